"""A function with each kind of type hint that the SDK knows. It is no tool of the component: its endings tell what became of it."""

import dataclasses
import enum
import math
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

from toolcell import Context, tool
from toolcell._tool import TOOLS


class Unit(enum.Enum):
    METRE = "m"
    FOOT = "ft"


class Level(enum.Enum):
    LOW = 1
    SPAN = (1, 2)


@dataclasses.dataclass
class Place:
    name: str
    height: float = 0.5
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Square:
    kind: Literal["square"]
    size: float


@dataclasses.dataclass
class Circle:
    kind: Literal["circle"]
    size: float


class Options(TypedDict):
    unit: Unit
    digits: "NotRequired[Annotated[int, 'How many']]"


@tool
async def hinted(
    text: str,
    ratio: float,
    maybe: Optional[int],
    choice: Literal["a", 3],
    level_or_flag: Literal[1, Unit.FOOT] | bool,
    places: list[Place],
    counts: dict[str, int],
    options: Options,
    either: bool | list[int],
    figures: Optional[list[Square | Circle | None]],
    amount: int | float,
    level: Level | bool,
    described: Annotated[str, "What it is"],
    anything: Any,
    bare,
    unit: Unit = Unit.METRE,
    span: Level = Level.LOW,
    limit: int = 5,
    flag: bool = False,
    nothing: Optional[str] = None,
    most: float = math.inf,
    context: Context | None = None,
):
    """Has hints.

    Args:
        text: A text
            of two lines, see
            https://example.com/texts
    """


HINTED = TOOLS.pop("hinted")
GIVEN = {
    "text": "a", "ratio": 2, "maybe": 3.0, "choice": 3.0, "level_or_flag": "ft", "places": [{"name": "Bern"}], "counts": {"a": 1.0},
    "options": {"unit": "ft"}, "either": [1.0], "figures": [{"kind": "circle", "size": 1}, None], "amount": 1e300,
    "level": True, "described": "b", "anything": {"c": []}, "bare": 1, "unit": "m", "span": [1, 2],
}
ENDINGS = {
    "hints": lambda: HINTED.parameters,
    "values": lambda: {name: repr(value) for name, value in HINTED.arguments(GIVEN, "that of the call").items()},
}
