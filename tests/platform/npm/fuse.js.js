import Fuse from "fuse.js";

export const work = () => {
  const books = ["Old Man's War", "The Lock Artist", "HTML5", "Right Ho Jeeves"].map((title) => ({ title }));
  const found = new Fuse(books, { keys: ["title"], includeScore: true, includeMatches: true }).search("od man");
  return found.map(({ item, score, matches }) => [item.title, score.toFixed(4), matches[0].indices]);
};
