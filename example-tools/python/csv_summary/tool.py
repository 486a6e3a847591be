import csv
import io
import statistics
from typing import Optional

from toolcell import ToolFailure, tool


@tool(read_only=True, idempotent=True)
def csv_summary(text: str, delimiter: str = ",", columns: Optional[list[str]] = None) -> dict:
    """Summarises the columns of a CSV table: how many values, and for numbers the least, the greatest, mean, median and
    standard deviation.

    Args:
        text: The table. Its first line has the names of the columns.
        delimiter: The character between two values.
        columns: Only these columns.
    """
    if len(delimiter) != 1:
        raise ToolFailure("`delimiter` must be one character, for example `,` or `;`")
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    if not rows:
        raise ToolFailure("the table has no rows: pass a line of column names, and at least one line of values")
    names = list(rows[0]) if columns is None else columns
    unknown = [name for name in names if name not in rows[0]]
    if unknown:
        raise ToolFailure(f"there is no column {unknown[0]!r}; the columns are {', '.join(map(str, rows[0]))}")
    return {"rows": len(rows), "columns": {name: _summary([row[name] for row in rows if row[name]]) for name in names}}


def _summary(values):
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return {"values": len(values), "distinct": len(set(map(str, values)))}
    if not numbers:
        return {"values": 0, "distinct": 0}
    summary = {"values": len(numbers), "least": min(numbers), "greatest": max(numbers)}
    summary |= {"mean": statistics.fmean(numbers), "median": statistics.median(numbers)}
    if len(numbers) > 1:
        summary["deviation"] = statistics.stdev(numbers)
    return summary
