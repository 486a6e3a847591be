// From local times to moments, and back.
import { type Rule, type Zone, ZONES } from "./zones.ts";

export const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const LAST_YEAR = 2099;

/** What is wrong with a time or a zone, for the model. */
export class TimeError extends Error {}

export function zoneOf(name: string): Zone {
  const zone = Object.hasOwn(ZONES, name) ? ZONES[name] : undefined;
  if (zone !== undefined) return zone;
  const city = name.split("/").at(-1)?.toLowerCase().replaceAll(" ", "_") ?? "";
  const like = Object.keys(ZONES).filter((known) => city !== "" && known.toLowerCase().includes(city));
  const others = like.length > 0 ? `; do you mean ${like.join(" or ")}?` : `; the known zones are ${Object.keys(ZONES).join(", ")}`;
  throw new TimeError(`the zone \`${name}\` is not known${others}`);
}

/** The first (1), second (2) or last (-1) Sunday of a month, as a day of that month. */
function sunday(year: number, month: number, which: 1 | 2 | -1): number {
  if (which === -1) {
    const last = new Date(Date.UTC(year, month, 0));
    return last.getUTCDate() - last.getUTCDay();
  }
  const first = new Date(Date.UTC(year, month - 1, 1)).getUTCDay();
  return 1 + ((7 - first) % 7) + 7 * (which - 1);
}

/** The moments at which summer time begins and ends in a year. South of the equator it ends first. */
function summer(rule: Rule, year: number, standard: number): { begins: number; ends: number } {
  // Hours are those of standard time; the European rule has one moment for all.
  const at = (month: number, which: 1 | 2 | -1, hour: number, offset = standard) =>
    Date.UTC(year, month - 1, sunday(year, month, which), hour) - offset * MINUTE;
  switch (rule) {
    case "eu":
      return { begins: at(3, -1, 1, 0), ends: at(10, -1, 1, 0) };
    case "us":
      return { begins: at(3, 2, 2), ends: at(11, 1, 1) };
    case "au":
      return { begins: at(10, 1, 2), ends: at(4, 1, 2) };
    case "nz":
      return { begins: at(9, -1, 2), ends: at(4, 1, 2) };
  }
}

/** Minutes east of UTC at a moment, and whether it is summer time. */
export function offsetAt(name: string, moment: number): { offset: number; summer: boolean } {
  const { standard, rule, since } = zoneOf(name);
  const year = new Date(moment + standard * MINUTE).getUTCFullYear();
  if (year < since || year > LAST_YEAR) throw new TimeError(`times in ${name} are known from ${since} to ${LAST_YEAR}`);
  if (rule === undefined) return { offset: standard, summer: false };
  const { begins, ends } = summer(rule, year, standard);
  const isSummer = begins < ends ? begins <= moment && moment < ends : moment < ends || begins <= moment;
  return { offset: standard + (isSummer ? 60 : 0), summer: isSummer };
}

/** Which of two moments a local time means that comes twice. */
export type Twice = "earlier" | "later" | "refuse";

/** The moment of a local time, which is given as if it were UTC. */
export function moment(local: number, zone: string, twice: Twice): number {
  const offsets = [local - 12 * HOUR, local + 12 * HOUR].map((near) => offsetAt(zone, near).offset);
  const found = [...new Set(offsets)].map((offset) => local - offset * MINUTE).filter((at) => at + offsetAt(zone, at).offset * MINUTE === local);
  const [first, second] = found.sort((one, other) => one - other);
  const told = new Date(local).toISOString().slice(0, 16);
  if (first === undefined) throw new TimeError(`there is no ${told} in ${zone}: the clocks are put forward over it`);
  if (second === undefined || twice === "earlier") return first;
  if (twice === "later") return second;
  throw new TimeError(`${told} comes twice in ${zone}: the clocks are put back; set \`twice\` to earlier or later`);
}

const TIME = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/;

/** Reads a time: as if it were UTC, and how many minutes east of UTC it says it is. */
export function read(text: string): { local: number; offset?: number } {
  const found = TIME.exec(text.trim());
  if (found === null) throw new TimeError(`\`${text}\` is not a time: write 2026-03-29T09:30, or with an offset 2026-03-29T09:30:00+02:00`);
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part ?? 0));
  const local = Date.UTC(year, month - 1, day, hour, minute, second);
  const date = new Date(local);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59 || second > 59) {
    throw new TimeError(`\`${text}\` is not a time: there is no such day, or no such hour`);
  }
  return { local, offset: found[7] === undefined ? undefined : minutes(found[7]) };
}

function minutes(offset: string): number {
  if (offset === "Z") return 0;
  const [hours, rest] = offset.slice(1).split(":").map(Number);
  return (offset.startsWith("-") ? -1 : 1) * (hours * 60 + rest);
}

/** A moment as a zone shows it. */
export function shown(at: number, zone: string) {
  const { offset, summer } = offsetAt(zone, at);
  const local = new Date(at + offset * MINUTE);
  const pad = (value: number) => String(value).padStart(2, "0");
  const sign = `${offset < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`;
  return { zone, time: `${local.toISOString().slice(0, 19)}${sign}`, weekday: DAYS[local.getUTCDay()], summer };
}
