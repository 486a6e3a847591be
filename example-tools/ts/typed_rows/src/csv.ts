// Reads comma-separated values (RFC 4180), and those with another separator.

export interface Row {
  /** The line on which the row begins, from 1. */
  line: number;
  fields: string[];
}

/** What is wrong with the text, for the model. */
export class CsvError extends Error {}

/** The separator that the first line has most often. */
export function separatorOf(text: string): string {
  const first = text.split("\n", 1)[0];
  const count = (separator: string) => first.split(separator).length;
  return [",", ";", "\t", "|"].reduce((best, other) => (count(other) > count(best) ? other : best));
}

/** The rows of a text. Empty lines are none. */
export function rows(text: string, separator: string): Row[] {
  const found: Row[] = [];
  let [place, line] = [text.startsWith("\uFEFF") ? 1 : 0, 1];
  while (place < text.length) {
    const row: Row = { line, fields: [] };
    for (let isOpen = true; isOpen; ) {
      const field = text[place] === '"' ? quoted(text, place, line) : plain(text, place, separator);
      row.fields.push(field.text);
      [place, line] = [field.end, line + field.lines];
      if (text.startsWith(separator, place)) place += separator.length;
      else if (place >= text.length || text[place] === "\n" || text.startsWith("\r\n", place)) isOpen = false;
      else throw new CsvError(`line ${line}: after a quoted field comes \`${separator}\` or the end of the line, not \`${text[place]}\``);
    }
    place += text.startsWith("\r\n", place) ? 2 : 1;
    line += 1;
    if (row.fields.length > 1 || row.fields[0] !== "") found.push(row);
  }
  return found;
}

interface Field {
  text: string;
  end: number;
  /** Ends of lines in it. */
  lines: number;
}

function plain(text: string, start: number, separator: string): Field {
  let end = start;
  while (end < text.length && text[end] !== "\n" && !text.startsWith(separator, end) && !text.startsWith("\r\n", end)) end++;
  return { text: text.slice(start, end).trim(), end, lines: 0 };
}

function quoted(text: string, start: number, line: number): Field {
  let read = "";
  for (let end = start + 1; end < text.length; end++) {
    if (text[end] !== '"') read += text[end];
    else if (text[end + 1] === '"') read += text[end++];
    else return { text: read, end: end + 1, lines: read.split("\n").length - 1 };
  }
  throw new CsvError(`line ${line}: a quoted field has no end`);
}
