import { DateTime, Duration, Info, Interval } from "luxon";

const text = "2024-03-10T06:59:59.500Z", zones = ["Europe/Zurich", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"];
const presets = ["DATE_SHORT", "DATE_HUGE", "TIME_SIMPLE", "TIME_WITH_LONG_OFFSET", "DATETIME_MED", "DATETIME_FULL", "DATETIME_HUGE_WITH_SECONDS"];

export const work = () => [
  zones.map((zone) => DateTime.fromISO(text, { zone }).toISO()),
  DateTime.fromObject({ year: 2024, month: 3, day: 10, hour: 2, minute: 30 }, { zone: "America/New_York" }).toString(),
  presets.map((name) => DateTime.fromISO(text, { zone: "Europe/Zurich" }).toLocaleString(DateTime[name])),
  DateTime.fromISO(text, { zone: "America/New_York" }).toFormat("cccc, d LLLL yyyy HH:mm:ss.SSS ZZZZ z ZZZZZ a G kkkk WW o q"),
  DateTime.fromFormat("May 25 1982 3:07 PM", "LLLL dd yyyy h:mm a", { zone: "Europe/Zurich" }).toISO(),
  [-3, -1, 0, 1].map((days) => DateTime.fromISO(text).plus({ days }).toRelative({ base: DateTime.fromISO(text) })),
  [Duration.fromObject({ months: 1, hours: 5 }).toHuman(), Duration.fromMillis(3723004).toFormat("hh:mm:ss.SSS")],
  Interval.fromISO("2024-03-01/2024-03-31").toFormat("dd LLL"),
  [Info.months("long"), Info.hasDST("Europe/Zurich"), Info.features()],
];
