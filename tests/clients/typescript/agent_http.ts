// An agent that uses the tools of a toolcell server over HTTP, with `fetch` only.
//
//     TOOLCELL_KEY=tck_… node agent_http.ts http://127.0.0.1:8700

import { type Json, Person, ScriptedModel, check, isSorted, runAgent } from "./agent.ts";

/** The HTTP API of one server, with the key of one tenant. */
class Toolcell {
    private url: string;
    private headers: Record<string, string>;

    constructor(url: string, key: string) {
        this.url = url;
        this.headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    }

    /** A refused request has another status, and a problem as in RFC 9457: `code`, `detail`, `hint`. */
    async request(method: string, path: string, body?: Json, headers = {}): Promise<{ status: number; body: Json }> {
        const sent = { method, headers: { ...this.headers, ...headers }, body: body && JSON.stringify(body) };
        const response = await fetch(this.url + path, sent);
        return { status: response.status, body: JSON.parse((await response.text()) || "null") };
    }

    /** All tools, page by page. */
    async tools(): Promise<Json[]> {
        const tools: Json[] = [];
        for (let cursor: string | undefined = ""; cursor !== undefined; ) {
            const { body: page } = await this.request("GET", `/v1/tools${cursor}`);
            tools.push(...page.tools);
            cursor = page.next_cursor && `?cursor=${page.next_cursor}`;
        }
        return tools;
    }

    /** Makes a call, asks the person as often as the tool wants to, and returns the outcome. */
    async call(name: string, args: Json, person: Person): Promise<Json> {
        const body: Json = { name, arguments: args };
        while (true) {
            const { status, body: completion } = await this.request("POST", "/v1/calls", body);
            if (status !== 200) return { problem: completion };
            const question = completion.outcome.ask_user;
            if (question === undefined) return completion.outcome;
            body.resume = { answer: person.answer(question.question), state: question.state };
        }
    }
}

const server = new Toolcell(process.argv[2]!, process.env.TOOLCELL_KEY!);
const person = new Person();
const tools = await server.tools();
check("lists the tools, sorted by name", isSorted(tools), tools);

const call = (name: string, args: Json) => server.call(name, args, person);
const [text, [answer, mistake, booking, crash]] = await runAgent(new ScriptedModel(), tools, call);
check("calls a tool and gets its value", answer?.ok?.value === 42, answer);
check("sees a refusal with its reason", mistake?.refusal?.kind === "invalid_arguments", mistake);
check("is asked one question", person.asked.length === 1, person.asked);
check("answers it, and the call goes on", booking?.ok?.value.booking.name === "Ada", booking);
check("sees a panic as a typed error", crash?.tool_error?.cause.kind === "unreachable", crash);
check("ends with the text of the model", text === "Your table is booked.", text);

const unknown = await server.request("POST", "/v1/calls", { name: "nothing" });
check("sees a problem with a code", unknown.status === 404 && unknown.body.code === "unknown_tool", unknown);

// A call that never ends by itself. The client chooses the id of the request, and cancels it by that id.
const endless = server.request("POST", "/v1/calls", { name: "spin" }, { "x-request-id": "endless" });
while ((await server.request("GET", "/v1/usage")).body.running !== 1);
const cancelled = await server.request("DELETE", "/v1/calls/endless");
check("cancels a call that runs", cancelled.status === 202, cancelled);
const { body: completion } = await endless;
check("the call says that it was cancelled", completion.outcome.tool_error?.cause.status === "cancelled", completion);
const { body: usage } = await server.request("GET", "/v1/usage");
check("the tool has ended", usage.running === 0 && usage.outcomes.cancelled === 1, usage);
