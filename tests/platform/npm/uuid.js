import { v4, v5, v7, validate, version } from "uuid";

export const work = () => [validate(v4()), v5("x", v5.URL), version(v7()), v4() === v4()];
