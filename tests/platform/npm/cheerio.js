import * as cheerio from "cheerio";

export const work = () => {
  const page = cheerio.load("<ul><li class=a>1<li>2</ul><p title='é'>x");
  page("li").addClass("b");
  return [page("li").length, page(".a").text(), page("p").attr("title"), page.html()];
};
