import answers
from toolcell import tool


@tool
def compare(text: str) -> list[str]:
    """Tells the expressions with other answers."""
    return answers.differences(text, "~")
