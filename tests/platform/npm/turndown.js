import TurndownService from "turndown";

export const work = () => new TurndownService().turndown("<h1>Hi</h1><ul><li>a <b>b</b></li></ul><p><a href='http://a.example'>l</a></p>");
