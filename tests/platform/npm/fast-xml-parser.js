import { XMLBuilder, XMLParser } from "fast-xml-parser";

export const work = () => [
  new XMLParser({ ignoreAttributes: false }).parse("<a x='1'><b>2</b><b>é &amp; <![CDATA[<c>]]></b></a>"),
  new XMLBuilder({ format: true }).build({ a: { b: [1, 2] } }),
];
