import { tool } from "toolcell";

const NAMES = ["href", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];

/** What is wrong with a case of `urltestdata.json`, if anything. */
const parsed = ({ input, base, failure, ...expected }) => {
  let url;
  try {
    url = new URL(input, base ?? undefined);
  } catch {
    return failure ? null : "it is refused";
  }
  if (failure) return `it is ${url.href}`;
  const wrong = [...NAMES, "origin"].find((name) => name in expected && url[name] !== expected[name]);
  return wrong === undefined ? null : `${wrong} is ${url[wrong]}`;
};

/** What is wrong with a case of `setters_tests.json`, if anything. */
const set = ({ name, href, new_value: value, expected }) => {
  try {
    const url = new URL(href);
    url[name] = value;
    const wrong = Object.keys(expected).find((name) => url[name] !== expected[name]);
    return wrong === undefined ? null : `${wrong} is ${url[wrong]}`;
  } catch (error) {
    return `it throws ${error.message}`;
  }
};

tool({ name: "urls", description: "Judges cases.", handler: ({ cases }) => cases.map((one) => ("name" in one ? set(one) : parsed(one))) });
