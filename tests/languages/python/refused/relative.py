# tool.py:8: cannot import `.`: attempted relative import with no known parent package
from toolcell import tool


@tool
def count() -> int:
    """Counts."""
    from . import late

    return late.COUNT
