// A client that openapi-typescript generates from `/openapi.json`: the types of what it reads are the document's.
//
// Arguments: the server's URL. `TOOLCELL_KEY` is the key. Prints `ok: NAME` for each check.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi.ts";

type Schemas = components["schemas"];

const url = process.argv[2];
assert(url, "the server's URL is missing");
const client = createClient<paths>({
    baseUrl: url,
    headers: { authorization: `Bearer ${process.env["TOOLCELL_KEY"]}` },
});
const add = { name: "calculator", arguments: { expression: "6 * 7" } };

const completed = await client.POST("/v1/calls", { body: add });
const completion: Schemas["Completion"] | undefined = completed.data;
assert(completion, JSON.stringify(completed.error));
assert("ok" in completion.outcome);
assert.equal(completion.outcome.ok.value, 42);
assert(completion.usage.wall_us > 0);
console.log("ok: a completion is read");

const refused = await client.POST("/v1/calls", { body: { name: "calculator", arguments: {} } });
assert(refused.data && "refusal" in refused.data.outcome, JSON.stringify(refused));
assert.equal(refused.data.outcome.refusal.faults?.[0]?.code, "required");
console.log("ok: a refusal is read");

const batch = await client.POST("/v1/batch", { body: { calls: [{ id: "a", ...add }] } });
assert.deepEqual(batch.data?.messages.map((message) => message.content), ["42"]);
console.log("ok: the outcome of a run is read");

const streamed = await client.POST("/v1/runs", { body: { calls: [{ id: "a", ...add }] }, parseAs: "text" });
const lines = String(streamed.data).split("\n").filter((line) => line.startsWith("data: "));
const events = lines.map((line): Schemas["Event"] => JSON.parse(line.slice("data: ".length)));
const encoded = events.flatMap((event) => (event.type === "tool_result_encoded" ? [event.content] : []));
assert.deepEqual(encoded, ["42"]);
assert.equal(events.at(-1)?.type, "run_finished");
console.log("ok: the events of a run are read");

const listed = await client.GET("/v1/tools");
const definitions = listed.data?.tools.filter((tool): tool is Schemas["Definition"] => "description" in tool) ?? [];
assert(definitions.some((definition) => definition.name === "calculator" && definition.parameters));
console.log("ok: a definition is read");

const problem = await client.GET("/v1/tools/{name}", { params: { path: { name: "nobody" } } });
assert.equal(problem.error?.code, "unknown_tool");
console.log("ok: a problem is read");
