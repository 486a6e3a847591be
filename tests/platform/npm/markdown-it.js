import MarkdownIt from "markdown-it";

export const work = () =>
  new MarkdownIt({ linkify: true, typographer: true }).render("# Hi\n\nhttp://a.example *x* \"q\" ...\n\n1. a\n2. b\n\n```js\nlet a;\n```");
