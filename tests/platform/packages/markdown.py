import markdown


def work():
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
