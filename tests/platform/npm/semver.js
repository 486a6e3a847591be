import semver from "semver";

export const work = () => [
  semver.satisfies("1.2.3", "^1.0.0"), semver.inc("1.2.3", "minor"), semver.sort(["2.0.0", "1.0.0-rc.1", "1.0.0"]),
  semver.coerce("v3.4 beta").version, semver.minVersion(">=1.2 <2 || ^3").version, semver.validRange("x.y"),
];
