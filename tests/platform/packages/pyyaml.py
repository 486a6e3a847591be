import datetime

import yaml


def work():
    text = """
    base: &base {a: 1, b: [x, y]}
    other: {<<: *base, c: !!set {p}}
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
