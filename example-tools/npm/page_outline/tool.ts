// What is on a page: its title, its headings and its links. cheerio, a package of npm, reads the HTML.
import { load } from "cheerio";
import { tool, ToolFailure } from "toolcell";

/** The address without what a page uses to point into another one. `undefined` if it is not one of the web. */
function link(address: string | undefined): string | undefined {
  const plain = address?.trim().replace(/#.*$/s, "");
  if (!plain || /^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(plain)) return undefined;
  return plain;
}

const words = (text: string) => text.replace(/\s+/g, " ").trim();

export default tool({
  name: "page_outline",
  description: "Tells the title, the headings and the links of an HTML page.",
  parameters: {
    type: "object",
    properties: {
      html: { type: "string", maxLength: 500_000, description: "The page, as HTML." },
      within: { type: "string", default: "body", description: "A CSS selector: only what is in such elements is told." },
    },
    required: ["html"],
    additionalProperties: false,
  },
  readOnly: true,
  idempotent: true,
  handler: ({ html, within = "body" }) => {
    const page = load(html);
    let part;
    try {
      part = page(within);
    } catch (error) {
      throw new ToolFailure(`\`${within}\` is not a CSS selector: ${(error as Error).message}`);
    }
    const headings = part.find("h1, h2, h3, h4, h5, h6").toArray();
    const links = part.find("a[href]").toArray().map((element) => ({
      text: words(page(element).text()),
      to: link(page(element).attr("href")),
    }));
    return {
      title: words(page("title").first().text()),
      headings: headings.map((element) => ({ level: Number(element.tagName[1]), text: words(page(element).text()) })),
      links: links.filter(({ to }) => to !== undefined),
    };
  },
});
