import asyncio
import datetime
import logging
import random

import drawn
import flights
import hints
import imports
from endings import fail
from toolcell import (
    Context, InvokeError, Need, Output, ToolFailure, _host, abort, ask_user, fetch, halt, invoke, kv, progress, secrets, tool,
)


def read():
    answer = fetch("https://api.example.com/v1/city?q=Bern", secret=secrets.get("api_key"))
    return {"status": answer.status, **answer.json()}


def count():
    following = kv.get("counters/calls", 0) + 1
    kv.set("counters/calls", following)
    return following


def keys():
    kv.set_bytes("counters/a", b"1\0002", ttl_ms=60000)
    kv.set("counters/b", None)
    if kv.get_bytes("counters/a") != b"1\0002":
        raise ToolFailure("the bytes are others")
    return {"existed": kv.delete("counters/b"), "missing": kv.delete("counters/b"), "names": kv.list("counters/")}


def waits():
    logging.warning("waiting")
    progress(1, 2, "half")
    while not abort.requested:
        sum(range(100_000))
    return "stopped"


def invoke_caught(name="find_place"):
    try:
        return invoke(name, name="Bern")
    except InvokeError as error:
        return [error.kind, error.data]


def failure():
    raise ToolFailure("no such city", {"city": "Atlantis"}, retry_after_ms=1500)


def negative():
    raise ToolFailure("no such city", retry_after_ms=-5)


def caused():
    try:
        fail()
    except ValueError as error:
        raise RuntimeError("no cheese today") from error


class Sudden(BaseException):
    pass


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


def unprintable():
    raise Unprintable


def throws_text():
    raise Sudden("just a text")


async def promise():
    async def square(number):
        await asyncio.sleep(0)
        return number * number

    return ",".join(map(str, await asyncio.gather(*map(square, (1, 2, 3)))))


async def flood():
    while True:
        await asyncio.sleep(0)


async def pending():
    await asyncio.get_running_loop().create_future()


def recurse(depth):
    return recurse(depth + 1) + 1


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


def details():
    raise ToolFailure("no such city", {"city": {1}})


def logs():
    logging.warning("%d cities", "no")
    logging.warning("half \ud800")
    return "logged"


def unsent():
    """Arguments that the host cannot be given: each raises an error."""
    asked = (
        lambda: kv.get("counters/\ud800"), lambda: kv.get(5), lambda: kv.set_bytes("counters/a", None),
        lambda: fetch("https://api.example.com/v1/\ud800"), lambda: fetch("https://api.example.com/v1", body=5),
        lambda: fetch("https://api.example.com/v1", headers={"x-count": 5}),
    )
    names = []
    for ask in asked:
        try:
            ask()
        except Exception as error:
            names.append(type(error).__name__)
    return names


def late():
    kv.set_bytes("counters/late", bytearray(b"1"), ttl_ms=-1.5)
    progress(-1, 2)
    return kv.get_bytes("counters/late")


def half():
    raise ToolFailure("no such \ud800city")


def memory():
    kept = []
    while True:
        kept.append(b"x" * (1 << 20))


loop = {}
loop["self"] = loop
endings = {
    "value": lambda: {"list": [1, 2.5, "three"], "nothing": None, "yes": True},
    "nothing": lambda: None,
    "text": lambda: Output("text", message="a message", parts=["a part"]),
    "unknown part": lambda: Output("text", parts=[{"type": "resource", "uri": "a:b", "text": "a part"}]),
    "promise": promise,
    "failure": failure,
    "halt": lambda: halt("done", {"total": 3}),
    "read": read,
    "denied": lambda: fetch("https://elsewhere.example.com/"),
    "count": count,
    "keys": keys,
    "reveal": lambda: len(secrets.reveal("password")),
    "reveal_denied": lambda: secrets.reveal("elsewhere"),
    "waits": waits,
    "invoke": lambda: invoke("find_place", name="Bern"),
    "invoke_caught": invoke_caught,
    "loop": lambda: invoke("endings", how="loop"),
    "invoke_denied": lambda: invoke_caught("delete_all"),
    "progress": lambda: progress(1, 2, "half"),
    "throws": fail,
    "caused": caused,
    "throws_text": throws_text,
    "unprintable": unprintable,
    "microtasks": flood,
    "run": lambda: asyncio.run(promise()),
    "pending": pending,
    "circle": lambda: loop,
    "bigint": lambda: float("nan"),
    "nan": lambda: {"ratio": float("nan")},
    "infinite": lambda: [float("inf")],
    "surrogate": lambda: ["\ud800"],
    "deepest": lambda: [nested(125)],
    "deep": lambda: [nested(126)],
    "deeper": lambda: [nested(900)],
    "negative": negative,
    "long": lambda: 'a "quoted" text ' * 40_000,
    "large": lambda: 10**400,
    "larger": lambda: 10**5000,
    "details": details,
    "half": half,
    "unsent": unsent,
    "late": late,
    "logs": logs,
    "part": lambda: progress(0.25, 1),
    "typed": lambda: _host._request("https://api.example.com/", "post", {"Content-Type": "text/csv"}, None, ["a"], None).headers,
    "function": lambda: fail,
    "recursion": lambda: recurse(0),
    "memory": memory,
    "clock": lambda: datetime.datetime.now(datetime.timezone.utc).isoformat(),
    "random": random.random,
    **drawn.ENDINGS,
    **flights.ENDINGS,
    **hints.ENDINGS,
    **imports.ENDINGS,
}


async def faults(how):
    await asyncio.sleep(0)
    return [] if how == "ask" or how in endings else [f"there is no ending {how}"]


def validate(how):
    return asyncio.run(faults(how))


@tool(
    name="endings",
    needs=[
        Need("http", "GET https://api.example.com/v1", "to look something up"),
        Need("secret", "api_key", "to authenticate there"),
        Need("reveal", "password", "to measure it"),
        Need("kv", "write counters/*", "to count"),
        Need("invoke", "find_place", "to find places"),
        Need("invoke", "endings", "to call itself"),
    ],
    validate=validate,
)
async def end(how: str, context: Context):
    """Ends a call in each of the ways in which a call can end."""
    if how == "ask":
        return [context.answer, context.state] if context.is_answered else ask_user("Which one?", ["a", "b"], state=7)
    result = endings[how]()
    return await result if asyncio.iscoroutine(result) else result
