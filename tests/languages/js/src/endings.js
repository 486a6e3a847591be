export const fail = () => {
  throw new RangeError("out of cheese");
};
