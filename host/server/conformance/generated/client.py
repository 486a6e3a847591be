"""A client that openapi-python-client generates from `/openapi.json` reads what a server answers.

Argument: the server's URL. `TOOLCELL_KEY` is the key. Prints `ok: NAME` for each check.
"""

import json
import os
import sys

from generated_client import AuthenticatedClient
from generated_client.api.run_routes import batch, call, run
from generated_client.api.tools import get_tool, list_tools
from generated_client.models import (
    CallBody,
    Completion,
    Definition,
    OutcomeOk,
    OutcomeRefusal,
    Problem,
    RunBody,
    RunCall,
    RunFinished,
    RunOutcome,
    ToolResultEncoded,
    Tools,
)

client = AuthenticatedClient(base_url=sys.argv[1], token=os.environ["TOOLCELL_KEY"])
add = {"name": "calculator", "arguments": {"expression": "6 * 7"}}
calls = RunBody(calls=[RunCall.from_dict({"id": "a", **add})])


def check(name: str, passed: bool, seen: object) -> None:
    print(f"ok: {name}" if passed else f"FAILED: {name}")
    if not passed:
        sys.exit(f"{seen}")


completion = call.sync(client=client, body=CallBody.from_dict(add))
ended = completion.outcome if isinstance(completion, Completion) else None
check("a completion is read", isinstance(ended, OutcomeOk) and ended.ok.value == 42, completion)

refused = call.sync(client=client, body=CallBody(name="calculator"))
ended = refused.outcome if isinstance(refused, Completion) else None
faults = ended.refusal.faults if isinstance(ended, OutcomeRefusal) else None
check("a refusal is read", bool(faults) and faults[0].code == "required", refused)

outcome = batch.sync(client=client, body=calls)
check("the outcome of a run is read", isinstance(outcome, RunOutcome) and outcome.messages[0].content == "42", outcome)

lines = str(run.sync(client=client, body=calls)).splitlines()
events = {event["type"]: event for line in lines if line.startswith("data: ") for event in [json.loads(line[6:])]}
encoded = ToolResultEncoded.from_dict(events["tool_result_encoded"])
finished = RunFinished.from_dict(events["run_finished"])
check("the events of a run are read", (encoded.content, finished.calls) == ("42", 1), lines)

listed = list_tools.sync(client=client)
tools = listed.tools if isinstance(listed, Tools) else []
definitions = {tool.name: tool for tool in tools if isinstance(tool, Definition)}
check("a definition is read", "calculator" in definitions, listed)

problem = get_tool.sync("nobody", client=client)
check("a problem is read", isinstance(problem, Problem) and problem.code == "unknown_tool", problem)
