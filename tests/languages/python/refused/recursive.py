# TypeError: tool 'tree': a type that contains itself has no JSON Schema
import dataclasses

from toolcell import tool


@dataclasses.dataclass
class Node:
    name: str
    children: list["Node"]


@tool
def tree(node: Node) -> str:
    """Draws a tree."""
    return node.name
