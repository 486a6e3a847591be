import dayjs from "dayjs";
import advancedFormat from "dayjs/plugin/advancedFormat.js";
import relativeTime from "dayjs/plugin/relativeTime.js";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";

for (const plugin of [advancedFormat, relativeTime, utc, timezone]) dayjs.extend(plugin);
const instant = "2024-03-10T06:59:59.500Z";

export const work = () => [
  dayjs.utc("2024-02-29T13:05:00Z").add(1, "year").format("dddd, MMMM D, YYYY h:mm A"),
  dayjs.utc(0).from(dayjs.utc(864e5 * 40)),
  ...["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Zurich"].map((zone) => [
    dayjs.utc(instant).tz(zone).format("YYYY-MM-DDTHH:mm:ss.SSSZ z zzz"),
    dayjs.tz("2024-03-31 02:30", zone).format(),
    dayjs.tz("2024-11-03 01:30", zone).toISOString(),
    dayjs.utc(instant).tz(zone).startOf("day").toISOString(),
  ]),
];
