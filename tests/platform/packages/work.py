"""Work that packages do: a function for each, whose text is the same in CPython and in a component."""

import datetime
import sys


def jinja2():
    import jinja2

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


def dateutil():
    from dateutil import easter, parser, relativedelta, rrule, tz

    zurich, york = tz.gettz("Europe/Zurich"), tz.gettz("America/New_York")
    for day in (datetime.datetime(2026, 3, 29, 12), datetime.datetime(2026, 10, 25, 12), datetime.datetime(1975, 7, 1)):
        there = day.replace(tzinfo=zurich)
        yield there.isoformat(), there.tzname(), there.astimezone(york).isoformat()
    yield tz.datetime_ambiguous(datetime.datetime(2026, 10, 25, 2, 30), zurich)
    yield tz.datetime_exists(datetime.datetime(2026, 3, 29, 2, 30), zurich)
    yield tz.resolve_imaginary(datetime.datetime(2026, 3, 29, 2, 30, tzinfo=zurich)).isoformat()
    for text in ("2026-03-29T10:00:00Z", "Sat Oct 11 17:13:46 UTC 2025", "5 March 2026 3pm", "20260102T030405+0100"):
        yield parser.parse(text, default=datetime.datetime(2026, 1, 1)).isoformat()
    rule = rrule.rrulestr("DTSTART:20260101T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=4")
    yield [day.isoformat() for day in rule]
    yield (datetime.date(2024, 1, 31) + relativedelta.relativedelta(months=1)).isoformat(), easter.easter(2026).isoformat()
    yield repr(relativedelta.relativedelta(datetime.datetime(2026, 5, 1), datetime.datetime(2024, 2, 29)))
    try:
        parser.parse("no date at all")
    except parser.ParserError as error:
        yield str(error)


def mpmath():
    from mpmath import diff, findroot, gamma, hyp2f1, identify, limit, matrix, mp, mpf, nsum, pi, polyroots, quad, sin, sqrt, zeta

    mp.dps = 40
    yield str(pi), str(sqrt(mpf(2))), str(zeta(3)), str(gamma(mpf("0.3")))
    yield str(quad(lambda x: sin(x) ** 2, [0, pi])), str(nsum(lambda n: 1 / n**2, [1, mp.inf]))
    yield str(findroot(lambda x: x**3 - 2, 1)), str(diff(lambda x: x**5, 2)), str(limit(lambda n: (1 + 1 / n) ** n, mp.inf))
    yield [str(root) for root in polyroots([1, -6, 11, -6])], str(hyp2f1(1, 2, 3, mpf("0.5")))
    yield str(matrix([[1, 2], [3, 4]]) ** -1), mp.identify(sqrt(mpf(2)) / 2, ["sqrt(2)"])
    mp.dps = 15


def sympy():
    import sympy
    from sympy import Eq, Matrix, cos, diff, exp, factor, integrate, latex, limit, oo, series, simplify, sin, solve, sqrt, symbols

    x, y = symbols("x y")
    yield str(integrate(exp(-x) * sin(x), x)), str(integrate(exp(-x**2), (x, -oo, oo)))
    yield str(diff(sin(x) * exp(x**2), x)), str(factor(x**4 - 5 * x**2 + 4)), str(simplify(sin(x) ** 2 + cos(x) ** 2))
    yield str(solve([Eq(x + y, 5), Eq(x * y, 6)], [x, y])), str(solve(x**3 - 2, x)), str(limit(sin(x) / x, x, 0))
    yield str(series(cos(x), x, 0, 8)), latex(sqrt(x) / (1 + y**2)), str(sympy.dsolve(sympy.Function("f")(x).diff(x) - x))
    yield str(Matrix([[2, 1], [1, 2]]).eigenvals()), str(sympy.factorint(2**64 - 1)), str(sympy.sympify("2*x + 3*x"))
    yield sympy.pretty(sqrt(x) / y, use_unicode=True), str(sympy.nsimplify(0.333333333333333, rational=True)), str(sympy.pi.evalf(30))


def beautifulsoup4():
    from bs4 import BeautifulSoup

    page = """<html><head><title>Tägliches &amp; mehr</title></head><body><!-- note --><p class="a b">One <b>two</p>
    <table><tr><td>1<td>2</table><a href="/x?a=1&amp;b=2">link</a><ul><li>x<li>y</ul><br>end"""
    soup = BeautifulSoup(page, "html.parser")
    yield soup.title.string, soup.p["class"], [tag.get_text(strip=True) for tag in soup.select("td")], soup.a["href"]
    yield [tag.name for tag in soup.find_all(True)], soup.get_text(" ", strip=True)
    yield soup.prettify()
    soup.p.append(soup.new_tag("i", attrs={"data-x": "<1>"}))
    soup.b.unwrap()
    yield str(soup.p), [str(tag) for tag in soup.select("p.a:not(.c) > i, ul li:nth-of-type(2)")]
    yield BeautifulSoup("caf\xe9".encode("latin-1"), "html.parser", from_encoding="latin-1").get_text()
    yield BeautifulSoup(b"<meta charset=windows-1252><p>\x93quoted\x94", "html.parser").p.string


def pyyaml():
    import yaml

    text = """
    base: &base {a: 1, b: [x, y]}
    other: {<<: *base, c: !!set {p, q}}
    text: |
      two
      lines
    folded: >-
      one
      line
    when: 2026-03-29 10:00:00+02:00
    day: 2026-01-02
    flags: [yes, no, ~, 0o7, 0x1F, 1_000, .inf, 1e3, 12:30:45]
    bytes: !!binary aGVsbG8=
    """
    yield repr(yaml.safe_load(text))
    value = {"name": "Zoë", "list": [1, 2.5, None, True], "nested": {"long": "word " * 30, "date": datetime.date(2026, 1, 2)}}
    yield yaml.safe_dump(value), yaml.safe_dump(value, allow_unicode=True, sort_keys=False, default_flow_style=None)
    yield list(yaml.safe_load_all("--- 1\n--- [a, 'b']\n...\n"))
    for wrong in ("a: [1, 2", "a: 'b\nc: d", "!!python/object:os.system x", "\ta: 1"):
        try:
            yield repr(yaml.safe_load(wrong))
        except yaml.YAMLError as error:
            yield str(error)


def tabulate():
    from tabulate import tabulate, tabulate_formats

    rows = [["Bern", 133883, 46.9480], ["Zürich", 421878, 47.3769], ["東京", 13960000, None]]
    for style in tabulate_formats:
        yield tabulate(rows, headers=["city", "people", "north"], tablefmt=style, floatfmt=".2f", intfmt=",", missingval="?")
    yield tabulate([{"a": 1, "b": "x"}, {"a": 2}], headers="keys", showindex=True, colalign=("right", "left", "center"))
    yield tabulate([["a long text that wraps", "b"]], maxcolwidths=[8, None], tablefmt="grid")


def rapidfuzz():
    from rapidfuzz import distance, fuzz, process, utils

    names = ["new york jets", "new york giants", "dallas cowboys", "atlanta falcons", "São Paulo"]
    for scorer in (fuzz.ratio, fuzz.partial_ratio, fuzz.token_sort_ratio, fuzz.token_set_ratio, fuzz.WRatio, fuzz.QRatio):
        yield [round(scorer("the new york mets", name), 6) for name in names]
    yield process.extract("cowboys dallas", names, scorer=fuzz.token_sort_ratio, limit=2, processor=utils.default_process)
    yield process.extractOne("sao paulo", names, scorer=distance.JaroWinkler.normalized_similarity)
    yield distance.Levenshtein.distance("kitten", "sitting"), [tuple(op) for op in distance.Levenshtein.editops("kitten", "sitting")]
    yield distance.Indel.normalized_distance("lewenstein", "levenshtein"), distance.Hamming.distance("abc", "abd")
    yield distance.DamerauLevenshtein.distance("ca", "abc"), distance.OSA.similarity("ca", "abc"), distance.LCSseq.similarity("abcd", "bxd")


def markdown():
    import markdown

    text = """# Title {: #top .big }

[TOC]

## Part

A *text* with **bold**, `code`, a [link](http://a.example "t"), a footnote[^1] and an HTML abbreviation.

Term
:   its definition

| a | b |
|---|:-:|
| 1 | 2 |

```python
print("hi")
```

!!! note "Look"
    inside

1. one
2. two
    - nested

[^1]: The note.
*[HTML]: Hyper Text
"""
    names = ["abbr", "admonition", "attr_list", "def_list", "fenced_code", "footnotes", "md_in_html", "meta", "nl2br", "sane_lists", "smarty",
             "tables", "toc", "wikilinks"]
    yield markdown.markdown(text)
    for name in names:
        yield name, markdown.markdown(text, extensions=[name])
    yield markdown.markdown(text, extensions=["extra", "toc", "markdown.extensions.smarty"], output_format="html")
    converter = markdown.Markdown(extensions=["meta", "toc"])
    converter.convert("Author: Ada\n\n# One\n## Two")
    yield converter.Meta, converter.toc_tokens


def networkx():
    import networkx

    graph = networkx.karate_club_graph()
    yield graph.number_of_nodes(), graph.number_of_edges(), round(networkx.average_clustering(graph), 9)
    ranked = sorted(networkx.betweenness_centrality(graph).items(), key=lambda item: -item[1])[:3]
    yield [(node, round(value, 9)) for node, value in ranked]
    weighted = networkx.Graph()
    weighted.add_weighted_edges_from([("a", "b", 4), ("a", "c", 1), ("c", "b", 2), ("b", "d", 5), ("e", "f", 1)])
    yield networkx.shortest_path(weighted, "a", "d", weight="weight"), networkx.dijkstra_path_length(weighted, "a", "d")
    yield sorted(map(sorted, networkx.connected_components(weighted))), sorted(networkx.minimum_spanning_edges(weighted, data=False))
    yield list(networkx.topological_sort(networkx.DiGraph([(1, 2), (2, 3), (1, 3)]))), networkx.is_planar(networkx.complete_graph(5))
    flow = networkx.DiGraph()
    flow.add_edge("s", "a", capacity=3)
    flow.add_edge("a", "t", capacity=2)
    yield networkx.maximum_flow_value(flow, "s", "t"), networkx.diameter(networkx.path_graph(6)), networkx.to_dict_of_lists(flow)
    yield [sorted(group) for group in networkx.community.greedy_modularity_communities(graph)]
    yield sorted(networkx.fast_gnp_random_graph(12, 0.3, seed=7).edges), list(networkx.generate_graphml(flow))
    try:
        yield networkx.pagerank(networkx.path_graph(3))
    except ImportError as error:
        yield str(error)


PACKAGES = (beautifulsoup4, dateutil, jinja2, markdown, mpmath, networkx, pyyaml, rapidfuzz, sympy, tabulate)


def text(name):
    """What the work of this package gives."""
    work = next(work for work in PACKAGES if work.__name__ == name)
    return "\n".join(map(str, work()))


if __name__ == "__main__":
    print(text(sys.argv[1]))
