type Order = { tag: "shortest" } | { tag: "longest" } | { tag: "nearest"; val: bigint };
type Count = { words: number; letters: number };

const split = (text: string): string[] => text.split(/\s+/).filter(Boolean);

export const count = (text: string): Count => ({ words: split(text).length, letters: text.length });

export const shout = (text: string): string => {
  if (text === "") throw "there is no text";
  return text.toUpperCase();
};

export const sorted = (text: string, by: Order): string[] => {
  const place = (word: string): number => {
    if (by.tag === "nearest") return Math.abs(word.length - Number(by.val));
    return by.tag === "shortest" ? word.length : -word.length;
  };
  return split(text).sort((one, other) => place(one) - place(other));
};

export const longest = (text: string): bigint | undefined => {
  const lengths = split(text).map((word) => word.length);
  return lengths.length === 0 ? undefined : BigInt(Math.max(...lengths));
};
