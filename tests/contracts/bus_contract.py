"""The contract of the Bus port as plain checks. `Make` opens a bus of its own topic or stream on shared servers."""

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from frontrow.boxoffice.facts.model import BusFact, HoldReleased, OutboxFact, on_the_bus
from frontrow.boxoffice.facts.ports import Bus, BusReader

Make = Callable[[], Bus]
Check = Callable[[Make], Coroutine[Any, Any, None]]
PATIENCE_S = 60.0
BOOKINGS = 14
EVENTS = 7
SETTLING_TURNS = 12


def facts(count: int, first: int = 1) -> list[BusFact]:
    return [
        on_the_bus(OutboxFact(n, HoldReleased(f"bkg_{n % BOOKINGS}", f"evt_{n % EVENTS}", f"fan ü {n}", n, (n,), n)))
        for n in range(first, first + count)
    ]


async def read_until(reader: BusReader, wanted: set[int], *, finish: bool = True, limit: int = 100) -> list[BusFact]:
    """Read until all wanted facts were seen."""
    got: list[BusFact] = []
    deadline = time.monotonic() + PATIENCE_S
    while not wanted <= {fact.number for fact in got}:
        assert time.monotonic() < deadline, f"{len(wanted - {fact.number for fact in got})} facts never came"
        batch = await reader.read(limit, 0.2)
        got += batch
        if finish:
            await reader.done(batch)
    return got


def numbers(found: Sequence[BusFact]) -> set[int]:
    return {fact.number for fact in found}


async def every_group_gets_every_fact_in_order_even_if_it_comes_late(make: Make) -> None:
    bus = make()
    sent = facts(500)
    await bus.publish(sent[:300])
    first, second = await asyncio.gather(bus.reader("mail"), bus.reader("hooks"))
    await bus.publish(sent[300:])
    for reader in (first, second):
        got = await read_until(reader, numbers(sent))
        assert len(got) == len(sent), "nothing came twice where nothing failed"
        for _, of_event in itertools.groupby(sorted(got, key=lambda fact: fact.key), key=lambda fact: fact.key):
            order = [fact.number for fact in of_event]
            assert order == sorted(order), "facts of one event keep their order"
        assert {fact.number: fact.body for fact in got} == {fact.number: fact.body for fact in sent}
        assert got[0].fact().fan == f"fan ü {got[0].number}"
        assert await reader.read(10, 0.05) == []
        await reader.aclose()
    await bus.aclose()


async def what_a_dead_reader_did_not_finish_comes_again(make: Make) -> None:
    bus = make()
    sent = facts(200)
    await bus.publish(sent)
    dying = await bus.reader("mortal")
    finished: set[int] = set()
    for _ in range(100):
        batch = await dying.read(40, 0.2)
        if batch:
            await dying.done(batch)
            finished |= numbers(batch)
        if len(finished) >= 40:
            break
    in_hand = await read_until(dying, {max(numbers(sent) - finished)}, finish=False, limit=200)
    assert in_hand
    await dying.aclose()
    heir = await bus.reader("mortal")
    again = await read_until(heir, numbers(sent) - finished)
    assert not numbers(again) & finished, "what was finished does not come again"
    await heir.aclose()
    await bus.aclose()


async def members_of_a_group_share_the_facts(make: Make) -> None:
    """While a group still finds together facts may come twice; once it has, each fact comes to one member."""
    bus = make()
    members = [await bus.reader("shared"), await bus.reader("shared")]
    for turn in range(SETTLING_TURNS):
        sent = facts(300, first=1 + 300 * turn)
        await bus.publish(sent)
        seen = await read_together(members, sent)
        if len(seen) == len(sent):
            break
    assert len(seen) == len(sent), "members share, they do not all get everything"
    await asyncio.gather(*(member.aclose() for member in members))
    await bus.aclose()


async def read_together(members: Sequence[BusReader], sent: Sequence[BusFact]) -> list[BusFact]:
    """All members read until every one of these facts was seen and nothing more comes."""
    seen: list[BusFact] = []
    wanted = numbers(sent)

    async def work(reader: BusReader) -> None:
        deadline = time.monotonic() + PATIENCE_S
        batch = list(sent[:1])
        while batch or not wanted <= numbers(seen):
            assert time.monotonic() < deadline, "facts never came"
            batch = await reader.read(20, 0.1)
            seen.extend(fact for fact in batch if fact.number in wanted)
            await reader.done(batch)

    await asyncio.gather(*(work(member) for member in members))
    return seen


async def a_group_is_behind_by_what_it_has_not_finished(make: Make) -> None:
    bus = make()
    sent = facts(50)
    await bus.publish(sent[:30])
    reader = await bus.reader("measured")
    await read_until(reader, numbers(sent[:30]))
    assert await behind(bus) == 0
    await bus.publish(sent[30:])
    assert await behind(bus) == 20
    await read_until(reader, numbers(sent[30:]), finish=False)
    assert await behind(bus) == 20, "read is not finished"
    await reader.aclose()
    await bus.aclose()


async def behind(bus: Bus) -> int:
    found = await bus.measure_lag(["measured", "nobody"])
    assert {group for group, _ in found} >= {"measured"}
    return sum(lag for (group, _), lag in found.items() if group == "measured")


CHECKS: list[Check] = [
    every_group_gets_every_fact_in_order_even_if_it_comes_late,
    what_a_dead_reader_did_not_finish_comes_again,
    members_of_a_group_share_the_facts,
    a_group_is_behind_by_what_it_has_not_finished,
]
