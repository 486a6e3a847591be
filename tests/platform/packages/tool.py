import work
from toolcell import tool


@tool
def run(name: str) -> str:
    """Has a package do its work."""
    return work.text(name)
