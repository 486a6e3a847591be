import datetime

import babel
from babel import dates, numbers


def work():
    noon = datetime.datetime(2026, 3, 1, 12)
    for locale in ("de", "en", "fr_CH", "ja"):
        yield dates.format_date(noon.date(), "full", locale), numbers.format_currency(1234.5, "EUR", locale=locale)
        yield dates.format_datetime(noon, "full", dates.get_timezone("Europe/Zurich"), locale)
        yield dates.format_timedelta(datetime.timedelta(hours=3), locale=locale), babel.Locale.parse(locale).territories["CH"]
