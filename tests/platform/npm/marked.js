import { marked } from "marked";

export const work = () => marked.parse("# Hi\n\n- a\n- **b** `c`\n\n|x|y|\n|-|-|\n|1|2|\n\n> quote [l](http://a.example)");
