// An agent that uses the tools of a toolcell server over MCP, with the official SDK.
//
//     TOOLCELL_KEY=tck_… node agent_mcp.ts MODE http://127.0.0.1:8700
//     node agent_mcp.ts MODE toolcell serve --stdio --config /path/to/toolcell.toml
//
// MODE is the revision: `legacy` opens a session, as 2025-11-25 says; `2026-07-28` has none.

import { Client, ProtocolError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { type Json, Person, ScriptedModel, check, isSorted, runAgent } from "./agent.ts";

const [mode, target, ...words] = process.argv.slice(2) as [string, string, ...string[]];
const overHttp = target.startsWith("http://");
const headers = { Authorization: `Bearer ${process.env.TOOLCELL_KEY}` };
const transport = overHttp
    ? new StreamableHTTPClientTransport(new URL("/mcp", target), { requestInit: { headers } })
    : new StdioClientTransport({ command: target, args: words, env: process.env as Record<string, string> });

const person = new Person();
const client = new Client(
    { name: "example", version: "1" },
    {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: mode === "legacy" ? "legacy" : { pin: mode } },
    },
);
client.setRequestHandler("elicitation/create", async (request) => ({
    action: "accept",
    content: person.answer(request.params.message),
}));
await client.connect(transport);
const revision = client.getNegotiatedProtocolVersion();
check("speaks the revision", revision === (mode === "legacy" ? "2025-11-25" : mode), revision);

const { tools } = await client.listTools();
check("lists the tools, sorted by name", isSorted(tools), tools);

const call = async (name: string, args: Json): Promise<Json> => client.callTool({ name, arguments: args });
const [text, [answer, mistake, booking, crash]] = await runAgent(new ScriptedModel(), tools, call);
check("calls a tool and gets its value", answer?.content[0].text === "42", answer);
const refusal = mistake?._meta?.["toolcell/error"]?.refusal;
check("sees a refusal with its reason", mistake?.isError && refusal.kind === "invalid_arguments", mistake);
check("is asked one question", person.asked.length === 1, person.asked);
check("answers it, and the call goes on", booking?.structuredContent.booking.name === "Ada", booking);
const error = crash?._meta?.["toolcell/error"]?.tool_error;
check("sees a panic as a typed error", crash?.isError && error.cause.kind === "unreachable", crash);
check("ends with the text of the model", text === "Your table is booked.", text);

const unknown = await call("nothing", {}).catch((error) => error);
const isTold = unknown instanceof ProtocolError && unknown.code === -32602;
check("sees an unknown tool as an error of the protocol", isTold, unknown);

/** Waits until so many calls run. Over HTTP the tenant's usage says so. */
async function runs(calls: number): Promise<Json> {
    if (!overHttp) return new Promise((resolve) => setTimeout(resolve, 1000, {}));
    while (true) {
        const response = await fetch(new URL("/v1/usage", target), { headers });
        const usage = (await response.json()) as Json;
        if (usage.running === calls) return usage;
    }
}

// A call that never ends by itself.
const controller = new AbortController();
const endless = client.callTool({ name: "spin", arguments: {} }, { signal: controller.signal });
const ended = endless.catch(() => "cancelled");
await runs(1);
controller.abort();
check("cancels a call that runs", (await ended) === "cancelled");
const usage = await runs(0);
if (overHttp) check("the tool has ended", usage.outcomes.cancelled === 1, usage);
const after = await call("calculator", { expression: "1 + 1" });
check("goes on after it", after.content[0].text === "2", after);
await client.close();
