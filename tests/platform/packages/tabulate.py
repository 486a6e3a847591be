from tabulate import tabulate, tabulate_formats


def work():
    rows = [["Bern", 133883, 46.9480], ["Zürich", 421878, 47.3769], ["東京", 13960000, None]]
    for style in tabulate_formats:
        yield tabulate(rows, headers=["city", "people", "north"], tablefmt=style, floatfmt=".2f", intfmt=",", missingval="?")
    yield tabulate([{"a": 1, "b": "x"}, {"a": 2}], headers="keys", showindex=True, colalign=("right", "left", "center"))
    yield tabulate([["a long text that wraps", "b"]], maxcolwidths=[8, None], tablefmt="grid")
