// Time zones and their rules, since the engine has none.

/** When summer time begins and ends. */
export type Rule = "eu" | "us" | "au" | "nz";

export interface Zone {
  /** Minutes east of UTC in winter. */
  standard: number;
  rule?: Rule;
  /** The first year in which this is the zone's rule. */
  since: number;
}

/** The rules of the United States are of 2007, those of Australia and New Zealand of 2008. */
const SINCE = 2008;

const zone = (hours: number, rule?: Rule, since: number = SINCE): Zone => ({ standard: Math.round(hours * 60), rule, since });

export const ZONES: { [name: string]: Zone } = {
  UTC: zone(0),
  "Africa/Johannesburg": zone(2),
  "Africa/Lagos": zone(1),
  "Africa/Nairobi": zone(3),
  "America/Argentina/Buenos_Aires": zone(-3, undefined, 2010),
  "America/Anchorage": zone(-9, "us"),
  "America/Bogota": zone(-5),
  "America/Chicago": zone(-6, "us"),
  "America/Denver": zone(-7, "us"),
  "America/Halifax": zone(-4, "us"),
  "America/Los_Angeles": zone(-8, "us"),
  "America/Mexico_City": zone(-6, undefined, 2023),
  "America/New_York": zone(-5, "us"),
  "America/Phoenix": zone(-7),
  "America/Sao_Paulo": zone(-3, undefined, 2020),
  "America/Toronto": zone(-5, "us"),
  "Asia/Dubai": zone(4),
  "Asia/Hong_Kong": zone(8),
  "Asia/Jakarta": zone(7),
  "Asia/Kathmandu": zone(5.75),
  "Asia/Kolkata": zone(5.5),
  "Asia/Manila": zone(8),
  "Asia/Seoul": zone(9),
  "Asia/Shanghai": zone(8),
  "Asia/Singapore": zone(8),
  "Asia/Tokyo": zone(9),
  "Australia/Adelaide": zone(9.5, "au"),
  "Australia/Brisbane": zone(10),
  "Australia/Melbourne": zone(10, "au"),
  "Australia/Perth": zone(8, undefined, 2010),
  "Australia/Sydney": zone(10, "au"),
  "Europe/Amsterdam": zone(1, "eu"),
  "Europe/Athens": zone(2, "eu"),
  "Europe/Berlin": zone(1, "eu"),
  "Europe/Brussels": zone(1, "eu"),
  "Europe/Bucharest": zone(2, "eu"),
  "Europe/Budapest": zone(1, "eu"),
  "Europe/Copenhagen": zone(1, "eu"),
  "Europe/Dublin": zone(0, "eu"),
  "Europe/Helsinki": zone(2, "eu"),
  "Europe/Istanbul": zone(3, undefined, 2017),
  "Europe/Kyiv": zone(2, "eu"),
  "Europe/Lisbon": zone(0, "eu"),
  "Europe/London": zone(0, "eu"),
  "Europe/Madrid": zone(1, "eu"),
  "Europe/Moscow": zone(3, undefined, 2015),
  "Europe/Oslo": zone(1, "eu"),
  "Europe/Paris": zone(1, "eu"),
  "Europe/Prague": zone(1, "eu"),
  "Europe/Rome": zone(1, "eu"),
  "Europe/Stockholm": zone(1, "eu"),
  "Europe/Vienna": zone(1, "eu"),
  "Europe/Warsaw": zone(1, "eu"),
  "Europe/Zurich": zone(1, "eu"),
  "Pacific/Auckland": zone(12, "nz"),
  "Pacific/Honolulu": zone(-10),
};
