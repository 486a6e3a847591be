# `_ssl` is native code (a part of Python that this one lacks), which a component cannot run: use `fetch` of toolcell
# imported by tool.py:4
from toolcell import tool
import ssl


@tool
def count() -> int:
    """Counts."""
    return ssl.CERT_NONE
