import _ from "lodash-es";

export const work = () => [
  _.chunk([1, 2, 3], 2), _.groupBy(["one", "two", "three"], "length"), _.camelCase("Foo Bar-baz"),
  _.merge({ a: { b: 1 } }, { a: { c: 2 } }), _.template("hi <%= n %>")({ n: "x" }), _.deburr("déjà vu"),
  _.sortBy([{ a: 2 }, { a: 1 }], "a"), _.isEqual(new Map([[1, { a: 1 }]]), new Map([[1, { a: 1 }]])),
];
