"""What every FrameLog must do; run unchanged over each adapter, and over broken ones that it must catch."""

import asyncio
from collections.abc import Awaitable, Callable

from frontrow.boxoffice.seats.model.map_format import Frame
from frontrow.boxoffice.seats.ports.seat_map import FrameLog

Make = Callable[[], FrameLog]  # each call: another server's view of the same log, keeping at least 60 frames


async def numbers_without_gaps_for_fifty_callers(make: Make) -> None:
    logs = [make() for _ in range(5)]
    start = await logs[0].exchange("", 0, 0)
    await asyncio.gather(*(logs[n % 5].exchange(f"b{n}", start.epoch, start.seq) for n in range(50)))
    end = await logs[0].exchange("", start.epoch, start.seq)
    assert end.frames is not None
    assert [frame.prev for frame in end.frames] == list(range(50))
    assert [frame.seq for frame in end.frames] == list(range(1, 51))
    assert sorted(frame.body for frame in end.frames) == sorted(f"b{n}" for n in range(50))


async def everybody_sees_the_same_frames(make: Make) -> None:
    a, b = make(), make()
    start = await a.exchange("", 0, 0)
    mine = await a.exchange("x", start.epoch, 0)
    assert mine.frames == (Frame(start.epoch, 0, 1, "x"),)
    theirs = await b.exchange("y", start.epoch, 0)
    assert theirs.frames == (Frame(start.epoch, 0, 1, "x"), Frame(start.epoch, 1, 2, "y"))
    assert (await a.exchange("", start.epoch, 2)) == (start.epoch, 2, ())


async def says_when_frames_cannot_be_had(make: Make) -> None:
    log = make()
    start = await log.exchange("", 0, 0)
    for n in range(700):
        await log.exchange(str(n), start.epoch, n)
    assert (await log.exchange("", start.epoch, 0)).frames is None
    assert (await log.exchange("", start.epoch, 701)).frames is None
    assert (await log.exchange("", start.epoch + 1, 700)).frames is None
    last = (await log.exchange("", start.epoch, 640)).frames
    assert last is not None
    assert [frame.body for frame in last] == [str(n) for n in range(640, 700)]


async def listeners_hear_in_order(make: Make) -> None:
    a, b = make(), make()
    heard: list[Frame] = []
    ready, all_heard = asyncio.Event(), asyncio.Event()

    def hear(frame: Frame) -> None:
        heard.append(frame)
        if len(heard) == 20:
            all_heard.set()

    listening = asyncio.create_task(b.listen(hear, ready.set))
    try:
        await asyncio.wait_for(ready.wait(), 60)
        start = await a.exchange("", 0, 0)
        for n in range(20):
            await a.exchange(str(n), start.epoch, n)
        await asyncio.wait_for(all_heard.wait(), 60)
        assert [frame.body for frame in heard] == [str(n) for n in range(20)]
        assert [frame.prev for frame in heard] == list(range(20))
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


CONTRACT: list[Callable[[Make], Awaitable[None]]] = [
    numbers_without_gaps_for_fifty_callers,
    everybody_sees_the_same_frames,
    says_when_frames_cannot_be_had,
    listeners_hear_in_order,
]
