import { tool, ToolFailure } from "toolcell";
import { MINUTE, TimeError, moment, read, shown } from "./clock.ts";

/** Minutes between the starts of two meetings that are tried. */
const STEP = 15;
/** Minutes of the longest day: the clocks are put back once a year. */
const LONGEST_DAY = 25 * 60;

/** What is wrong with a time is for the model to correct. */
function told<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof TimeError) throw new ToolFailure(error.message);
    throw error;
  }
}

const zones = { type: "array", items: { type: "string" }, minItems: 1, maxItems: 20, description: "Zones, for example Europe/Zurich" } as const;
const clock = { type: "string", pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$" } as const;

export const convert = tool({
  name: "convert_time",
  description: "Tells what time it is elsewhere when it is a given time in a zone, with summer time, from 2008 to 2099.",
  parameters: {
    type: "object",
    properties: {
      time: { type: "string", description: "`now`, a local time such as 2026-03-29T09:30, or one with an offset such as 2026-03-29T09:30:00+02:00" },
      zone: { type: "string", description: "The zone of a local time [default: UTC]" },
      to: zones,
      twice: { enum: ["earlier", "later", "refuse"], description: "Which one is meant where the clocks are put back and a time comes twice [default: refuse]" },
    },
    required: ["time", "to"],
  },
  readOnly: true,
  handler: ({ time, zone = "UTC", to, twice = "refuse" }) =>
    told(() => {
      const given = time === "now" ? { local: Date.now(), offset: 0 } : read(time);
      const at = given.offset === undefined ? moment(given.local, zone, twice) : given.local - given.offset * MINUTE;
      return { utc: shown(at, "UTC").time, times: to.map((name) => shown(at, name)) };
    }),
});

export const meet = tool({
  name: "meeting_times",
  description: "Finds when a meeting can begin on a day so that it is within working hours in every zone. The day is that of the first zone.",
  parameters: {
    type: "object",
    properties: {
      date: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description: "For example 2026-07-01" },
      zones,
      from: { ...clock, description: "Where working hours begin [default: 09:00]" },
      until: { ...clock, description: "Where working hours end [default: 17:00]" },
      minutes: { type: "integer", minimum: 15, maximum: 480, description: "How long the meeting is [default: 60]" },
    },
    required: ["date", "zones"],
  },
  readOnly: true,
  idempotent: true,
  handler: ({ date, zones, from = "09:00", until = "17:00", minutes = 60 }) =>
    told(() => {
      const [first] = zones;
      const midnight = moment(read(`${date}T00:00`).local, first, "earlier");
      const found: { [zone: string]: string }[] = [];
      for (let start = 0; start < LONGEST_DAY; start += STEP) {
        const at = midnight + start * MINUTE;
        const times = zones.map((zone) => [zone, shown(at, zone).time, shown(at + minutes * MINUTE, zone).time]);
        const isWithin = times[0][1].startsWith(date) && times.every(([, begin, end]) => sameDay(begin, end) && hour(begin) >= from && hour(end) <= until);
        if (isWithin) found.push(Object.fromEntries(times.map(([zone, begin]) => [zone, begin])));
      }
      return { found: found.length, times: found };
    }),
});

const hour = (time: string) => time.slice(11, 16);
const sameDay = (one: string, other: string) => one.slice(0, 10) === other.slice(0, 10);
