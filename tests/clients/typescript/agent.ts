// What both agents share: a scripted model, a person who answers, the loop, and checks that print one line each.
// Replace `ScriptedModel` by a model and `Person` by your user interface; the loop stays.

export type Json = Record<string, any>;

/** Stands in for a model: each turn is a list of tool calls, or the final text. */
export class ScriptedModel {
    private turns: (Json[] | string)[] = [
        [{ name: "calculator", arguments: { expression: "6 * 7" } }],
        [{ name: "calculator", arguments: { expresion: "1" } }], // a typing error, which a model makes too
        [{ name: "book_table", arguments: { date: "2030-05-04", time: "18:30", party_size: 2 } }],
        [{ name: "panics", arguments: { words: "out of paper" } }],
        "Your table is booked.",
    ];

    reply(_messages: Json[], tools: Json[]): Json[] | string {
        const reply = this.turns.shift()!;
        for (const call of typeof reply === "string" ? [] : reply) {
            if (!tools.some((tool) => tool.name === call.name)) throw new Error(`no tool ${call.name}`);
        }
        return reply;
    }
}

/** Stands in for the user: answers a form by the names of its fields. */
export class Person {
    asked: string[] = [];

    answer(question: string): Json {
        this.asked.push(question);
        return { name: "Ada" };
    }
}

type Call = (name: string, args: Json) => Promise<Json>;

/** The agent loop: returns the final text, and what the tools answered. */
export async function runAgent(model: ScriptedModel, tools: Json[], call: Call): Promise<[string, Json[]]> {
    const messages: Json[] = [{ role: "user", content: "What is 6 * 7? And book a table for two." }];
    const results: Json[] = [];
    while (true) {
        const reply = model.reply(messages, tools);
        if (typeof reply === "string") return [reply, results];
        for (const wanted of reply) {
            const result = await call(wanted.name, wanted.arguments);
            results.push(result);
            messages.push({ role: "tool", name: wanted.name, content: result });
        }
    }
}

export function isSorted(tools: Json[]): boolean {
    return tools.every((tool, at) => at === 0 || tools[at - 1]!.name < tool.name);
}

/** Prints one line, and ends the program if the check failed. */
export function check(name: string, holds: boolean, seen?: unknown): void {
    console.log(`${holds ? "ok" : "FAILED"}: ${name}`);
    if (holds) return;
    console.error(`${name}: ${JSON.stringify(seen)}`);
    process.exit(1);
}
