# tool.py:10: cannot import `not_installed`: No module named 'not_installed'
import importlib

from toolcell import tool


@tool
def count() -> int:
    """Counts."""
    return importlib.import_module("not_installed").COUNT
