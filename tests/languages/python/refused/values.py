# TypeError: tool 'check': a value of <enum 'Day'> has no JSON form
import datetime
import enum

from toolcell import tool


class Day(enum.Enum):
    FIRST = datetime.date(2026, 1, 1)


@tool
def check(day: Day) -> str:
    """Checks."""
    return day.name
