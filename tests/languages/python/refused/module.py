# tool.py:8: cannot import `not_installed`: No module named 'not_installed'
from toolcell import tool


@tool
def count() -> int:
    """Counts."""
    import not_installed

    return not_installed.COUNT
