// JSON Pointers (RFC 6901): `/a/0/b`, with `~1` for a slash and `~0` for a tilde in a name.

export const written = (name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1");

/** The names of a pointer, or undefined if it is not one. */
export const parsed = (pointer) => {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return undefined;
  return pointer.slice(1).split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
};
