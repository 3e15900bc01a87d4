"""The number of large answers of tools that are held at once."""

import asyncio

from engine.network.peers import LargeAnswer

_SMALL, _LARGE = 1 << 20, 9 << 20


async def test_the_third_large_answer_waits_and_a_small_one_does_not() -> None:
    slots, grown = LargeAnswer.slots(), list[str]()

    async def read(name: str, size: int, seconds: float) -> None:
        with LargeAnswer(slots) as answer:
            await answer.grown(_SMALL)
            await answer.grown(size)
            await answer.grown(size)
            grown.append(name)
            await asyncio.sleep(seconds)

    async with asyncio.TaskGroup() as group:
        for name in ("first", "second", "third"):
            group.create_task(read(name, _LARGE, 0.1))
        group.create_task(read("small", _SMALL, 0))
        await asyncio.sleep(0.05)
        assert sorted(grown) == ["first", "second", "small"]
    assert grown[-1] == "third"


async def test_an_answer_that_is_given_up_leaves_its_place() -> None:
    slots = LargeAnswer.slots()
    for _ in range(5):
        with LargeAnswer(slots) as answer:
            await answer.grown(_LARGE)
    for _ in range(5):
        with LargeAnswer(slots) as answer:
            waiting = asyncio.create_task(answer.grown(_LARGE))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait((waiting,))
    async with asyncio.timeout(5):
        with LargeAnswer(slots) as answer:
            await answer.grown(_LARGE)
