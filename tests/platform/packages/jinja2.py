import jinja2


def work():
    templates = {
        "page": "{% extends 'base' %}{% import 'forms' as forms %}{% block body %}{% for row in rows|sort(attribute='name') %}"
        "{{ loop.index }}. {{ row.name|title }}: {{ '%.2f'|format(row.price) }}{{ ' (last)' if loop.last }}\n"
        "{% else %}nothing\n{% endfor %}{{ forms.field('q', '<&>') }}{% endblock %}",
        "base": "{% macro rule(n=3) %}{{ '-' * n }}{% endmacro %}{{ rule(5) }}\n{% block body %}{% endblock %}\n{{ rows|length }} rows",
        "forms": "{% macro field(name, value='') %}<input name={{ name }} value='{{ value }}'>{% endmacro %}",
    }
    environment = jinja2.Environment(loader=jinja2.DictLoader(templates), autoescape=True, trim_blocks=True)
    environment.filters["shout"] = lambda text: text.upper() + "!"
    rows = [{"name": "pear", "price": 2}, {"name": "apple", "price": 0.5}]
    yield environment.get_template("page").render(rows=rows)
    yield environment.from_string("{{ 'hi'|shout }} {{ [1, 2, 3]|map('string')|join('/') }} {{ {'b': 1, 'a': 2}|dictsort }}").render()
    yield environment.from_string("{{ rows|groupby('price')|list|length }} {{ missing|default('none') }} {{ 7 is odd }}").render(rows=rows)
    try:
        environment.from_string("{% if %}").render()
    except jinja2.TemplateSyntaxError as error:
        yield f"{error.lineno}: {error.message}"
    strict = jinja2.Environment(undefined=jinja2.StrictUndefined)
    try:
        strict.from_string("{{ a.b }}").render()
    except jinja2.UndefinedError as error:
        yield str(error)
