import datetime

from dateutil import easter, parser, relativedelta, rrule, tz


def work():
    zurich, york = tz.gettz("Europe/Zurich"), tz.gettz("America/New_York")
    for day in (datetime.datetime(2026, 3, 29, 12), datetime.datetime(2026, 10, 25, 12), datetime.datetime(1975, 7, 1)):
        there = day.replace(tzinfo=zurich)
        yield there.isoformat(), there.tzname(), there.astimezone(york).isoformat()
    yield tz.datetime_ambiguous(datetime.datetime(2026, 10, 25, 2, 30), zurich)
    yield tz.datetime_exists(datetime.datetime(2026, 3, 29, 2, 30), zurich)
    yield tz.resolve_imaginary(datetime.datetime(2026, 3, 29, 2, 30, tzinfo=zurich)).isoformat()
    for text in ("2026-03-29T10:00:00Z", "Sat Oct 11 17:13:46 UTC 2025", "5 March 2026 3pm", "20260102T030405+0100"):
        yield parser.parse(text, default=datetime.datetime(2026, 1, 1)).isoformat()
    rule = rrule.rrulestr("DTSTART:20260101T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=4")
    yield [day.isoformat() for day in rule]
    yield (datetime.date(2024, 1, 31) + relativedelta.relativedelta(months=1)).isoformat(), easter.easter(2026).isoformat()
    yield repr(relativedelta.relativedelta(datetime.datetime(2026, 5, 1), datetime.datetime(2024, 2, 29)))
    try:
        parser.parse("no date at all")
    except parser.ParserError as error:
        yield str(error)
