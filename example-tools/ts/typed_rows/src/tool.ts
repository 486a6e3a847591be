import { tool, ToolFailure } from "toolcell";
import { CsvError, type Row, rows, separatorOf } from "./csv.ts";
import * as schema from "./schema.ts";

const TYPES = {
  text: schema.text,
  number: schema.number,
  integer: schema.integer,
  boolean: schema.boolean,
  date: schema.date,
  email: schema.email,
} satisfies { [name: string]: schema.Schema<unknown> };

type Value = schema.TypeOf<(typeof TYPES)[keyof typeof TYPES]> | null;

interface Column {
  name: string;
  header?: string;
  type?: keyof typeof TYPES;
  optional?: boolean;
  one_of?: string[];
  minimum?: number;
  maximum?: number;
}

interface Problem {
  line: number;
  column: string;
  value: string;
  problem: string;
}

/** Problems that are told one by one. */
const MOST_PROBLEMS = 100;

/** The schema of a column's texts. */
function schemaOf({ type = "text", optional = false, one_of, minimum, maximum }: Column): schema.Schema<Value> {
  let found: schema.Schema<Value> = TYPES[type];
  if (one_of !== undefined) found = schema.where(found, (value) => one_of.includes(String(value)), `it is none of ${one_of.join(", ")}`);
  if (minimum !== undefined) found = schema.where(found, (value) => Number(value) >= minimum, `it is less than ${minimum}`);
  if (maximum !== undefined) found = schema.where(found, (value) => Number(value) <= maximum, `it is more than ${maximum}`);
  return optional ? schema.or(found, null) : schema.where(found, (value) => value !== "", "it is empty");
}

/** Where each column is in a row. */
function places(columns: Column[], header: Row | undefined): number[] {
  const names = header?.fields.map((name) => name.trim().toLowerCase()) ?? [];
  return columns.map(({ name, header = name }) => {
    const place = names.indexOf(header.trim().toLowerCase());
    if (place === -1) throw new ToolFailure(`there is no column \`${header}\`; the columns are ${names.join(", ")}`);
    return place;
  });
}

export default tool<{ csv: string; columns: Column[]; separator?: string }>({
  name: "typed_rows",
  description:
    "Reads a table (CSV with a header) into typed records, and tells every value that does not fit, with its line. " +
    "Understands quoted fields, numbers such as 1,234.50, and dates such as 31.01.2026, which become 2026-01-31.",
  parameters: {
    type: "object",
    properties: {
      csv: { type: "string", description: "The table; its first line names the columns" },
      columns: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          properties: {
            name: { type: "string", description: "The member's name in the records" },
            header: { type: "string", description: "The column's name in the table [default: name]" },
            type: { enum: Object.keys(TYPES), description: "[default: text]" },
            optional: { type: "boolean", description: "An empty field is null [default: false, which is a problem]" },
            one_of: { type: "array", items: { type: "string" } },
            minimum: { type: "number" },
            maximum: { type: "number" },
          },
          required: ["name"],
          additionalProperties: false,
        },
      },
      separator: { type: "string", minLength: 1, maxLength: 1, description: "[default: the one that the first line has most often]" },
    },
    required: ["csv", "columns"],
  },
  readOnly: true,
  idempotent: true,
  handler: ({ csv, columns, separator = separatorOf(csv) }) => {
    const [header, ...body] = table(csv, separator);
    const readers = columns.map(schemaOf);
    const where = places(columns, header);
    const problems: Problem[] = [];
    const records: { [name: string]: Value }[] = [];
    for (const { line, fields } of body) {
      const before = problems.length;
      const values = readers.map((reader, index): [string, Value] => {
        const value = fields[where[index]] ?? "";
        const read = reader.read(value);
        if (read.ok) return [columns[index].name, read.value];
        problems.push({ line, column: columns[index].name, value, problem: read.problem });
        return [columns[index].name, null];
      });
      if (problems.length === before) records.push(Object.fromEntries(values));
    }
    return { records, rejected: body.length - records.length, problems: problems.slice(0, MOST_PROBLEMS) };
  },
});

function table(csv: string, separator: string): Row[] {
  try {
    return rows(csv, separator);
  } catch (error) {
    if (error instanceof CsvError) throw new ToolFailure(error.message);
    throw error;
  }
}
