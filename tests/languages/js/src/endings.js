export const fail = () => {
  throw new RangeError("out of cheese");
};
export const failLater = async () => {
  for (let turns = 0; turns < 100; turns++) await null;
  throw new RangeError("out of cheese");
};
