"""Requests that are on their way together."""

import asyncio

from toolcell import fetch_async

PLACE = "https://api.example.com/v1/"


# The page on Python shows it.
async def weather(cities):
    requests = [fetch_async(f"https://api.example.com/v1/weather/{city}", timeout_ms=5000) for city in cities]
    return [response.json() for response in await asyncio.gather(*requests)]


async def together():
    """The order of what happens, and the answers."""
    order = []

    async def ask(path):
        order.append("begins")
        response = await fetch_async(PLACE + path)
        order.append("ends")
        return response.json()

    answers = await asyncio.gather(*map(ask, "abcd"))
    return [order, answers]


async def grouped():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in (fetch_async(PLACE + "a"), asyncio.sleep(0.01, "slept"))]
    return [tasks[0].result().json(), tasks[1].result()]


async def grouped_denied():
    async with asyncio.TaskGroup() as group:
        group.create_task(fetch_async("https://elsewhere.example.com/"))


async def grouped_faults():
    async def fails():
        raise ValueError("out of cheese")

    async with asyncio.TaskGroup() as group:
        for work in (fails(), fetch_async("https://elsewhere.example.com/")):
            group.create_task(work)


async def cancelled():
    """What a task is that was cancelled while its request was on its way, and the answer of the next one."""
    task = asyncio.create_task(fetch_async(PLACE + "a"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return [task.cancelled(), (await fetch_async(PLACE + "b")).json()]


async def left():
    task = asyncio.create_task(fetch_async(PLACE + "a"))
    await asyncio.sleep(0)
    return task.done()


async def listed():
    return (await fetch_async(PLACE + "a")).headers["link"]


ENDINGS = {
    "flights of the page": lambda: weather(["Bern", "Chur"]),
    "flights together": together,
    "flights grouped": grouped,
    "flights grouped denied": grouped_denied,
    "flights grouped faults": grouped_faults,
    "flights cancelled": cancelled,
    "flights left": left,
    "flights listed": listed,
    "flights denied": lambda: fetch_async("https://elsewhere.example.com/"),
}
