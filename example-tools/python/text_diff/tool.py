import difflib
from typing import Literal

from toolcell import tool


@tool(read_only=True, idempotent=True)
def text_diff(before: str, after: str, form: Literal["unified", "similarity"] = "unified", context: int = 3):
    """Compares two texts line by line.

    Args:
        before: The first text.
        after: The second text.
        form: `unified` for a unified diff, `similarity` for a number from 0 to 1.
        context: Unchanged lines around each change of a unified diff.
    """
    first, second = before.splitlines(), after.splitlines()
    if form == "similarity":
        return round(difflib.SequenceMatcher(None, first, second).ratio(), 4)
    return "\n".join(difflib.unified_diff(first, second, "before", "after", lineterm="", n=max(context, 0)))
