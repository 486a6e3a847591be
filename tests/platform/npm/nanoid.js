import { customAlphabet, nanoid } from "nanoid";

export const work = () => [nanoid().length, nanoid() === nanoid(), /^[ab]{5}$/.test(customAlphabet("ab", 5)())];
