export const count = (text) => ({ words: text.split(/\s+/).filter(Boolean).length, letters: text.length });

export const shout = (text) => {
  if (text === "") throw "there is no text";
  return text.toUpperCase();
};
