# tool.py:8: cannot import `json.none`: No module named 'json.none'
from toolcell import tool


@tool
def count() -> int:
    """Counts."""
    from json import none

    return none
