from toolcell import tool


@tool(read_only=True, idempotent=True)
def greet(name: str) -> str:
    """Greets a person by name.

    Args:
        name: Who to greet, for example `Ada`.
    """
    return f"Hello, {name}!"
