# `_ssl` is native code (a part of Python that this one lacks), which a component cannot run: use `fetch` of toolcell
# imported by tool.py:9
from toolcell import tool


@tool
def count() -> int:
    """Counts."""
    from ssl import CERT_NONE

    return CERT_NONE
