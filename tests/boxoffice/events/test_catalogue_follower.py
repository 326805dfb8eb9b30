"""Every process follows the catalogue by the number of its newest change, on both databases."""

import asyncio
from dataclasses import replace

from bench.events import DAY_US, NOW_US, many_events
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.catalogue_follower import CatalogueFollower
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.core.errors import Unavailable
from tests.boxoffice.conftest import opened
from tests.support.eventually import eventually

SHOW = next(many_events(1))


class Followed:
    """A follower over a ledger, with what it was told and what it read."""

    def __init__(self, ledger: SqlLedger) -> None:
        self.follower = CatalogueFollower(ledger.catalogue, self.open, self.end)
        self.live: dict[str, Event] = {}
        self.ended: list[str] = []
        self.calls = 0
        self.failing = 0
        self.reads: list[str] = []
        read = ledger.store.read

        async def counted(query: Query) -> list[object]:
            self.reads.append(query.name)
            return await read(query)  # type: ignore[return-value]

        ledger.store.read = counted  # type: ignore[method-assign, assignment]

    async def open(self, event: Event) -> None:
        self.calls += 1
        if self.failing:
            self.failing -= 1
            raise Unavailable("no answer")
        self.live[event.id] = event

    async def end(self, event_id: str, event: Event) -> None:
        self.calls += 1
        del self.live[event_id]
        self.ended.append(event_id)

    async def look(self) -> dict[str, Event]:
        self.reads.clear()
        await self.follower.sync()
        return self.live


async def test_an_event_opens_whatever_crowd_of_drafts_and_past_events_stands_before_it(ledger: SqlLedger) -> None:
    """Every process decoded the oldest 10,000 events 2.5 times a second; newer ones never opened."""
    await ledger.catalogue.put_events(list(many_events(1_500, live_every=10_000)), NOW_US)
    followed = Followed(ledger)
    assert set(await followed.look()) == {SHOW.id}
    assert followed.reads == ["catalogue_version", "live_events"]
    last = replace(SHOW, id="evt_last", starts_at_us=NOW_US + 9_000 * DAY_US)
    await ledger.catalogue.put_event(last, NOW_US)
    assert await followed.look() == {SHOW.id: SHOW, "evt_last": last}
    assert followed.reads == ["catalogue_version", "changed_events"]


async def test_an_idle_process_reads_nothing_but_the_version(ledger: SqlLedger) -> None:
    await ledger.catalogue.put_events(list(many_events(20)), NOW_US)
    followed = Followed(ledger)
    await followed.look()
    calls = followed.calls
    for _ in range(5):
        await followed.look()
        assert followed.reads == ["catalogue_version"]
    assert followed.calls == calls


async def test_changes_of_another_server_with_any_clock_are_seen_once(ledger_url: str) -> None:
    async with opened(ledger_url) as here, opened(ledger_url) as there:
        followed = Followed(here)
        await followed.look()
        for number, at_us in enumerate((NOW_US, NOW_US - DAY_US, 1, NOW_US + DAY_US)):
            await there.catalogue.put_event(replace(SHOW, paused=number % 2 == 0), at_us)
            assert (await followed.look())[SHOW.id].paused == (number % 2 == 0)
        assert followed.calls == 4
        await there.catalogue.put_event(replace(SHOW, status=EventStatus.COMPLETED), NOW_US)
        assert await followed.look() == {}
        assert followed.ended == [SHOW.id]
        await there.catalogue.put_event(replace(SHOW, status=EventStatus.COMPLETED, name="Later"), NOW_US)
        await followed.look()
        assert followed.calls == 5, "what is over is nobody's business"


async def test_many_changes_at_once_are_read_in_pages_and_none_is_lost(ledger: SqlLedger) -> None:
    followed = Followed(ledger)
    await followed.look()
    events = list(many_events(1_203))
    await ledger.catalogue.put_events(events, NOW_US)  # one transaction, on PostgreSQL one number
    assert set(await followed.look()) == {event.id for event in events}
    await asyncio.gather(*(ledger.catalogue.put_event(replace(event, paused=True), NOW_US) for event in events[:300]))
    assert sum(event.paused for event in (await followed.look()).values()) == 300


async def test_what_fails_is_tried_again_as_it_is_then(ledger: SqlLedger) -> None:
    followed = Followed(ledger)
    await followed.look()
    followed.failing = 1
    await ledger.catalogue.put_event(SHOW, NOW_US)
    assert await followed.look() == {}
    assert followed.follower.failures == 1
    assert await followed.look() == {SHOW.id: SHOW}
    followed.failing = 1
    await ledger.catalogue.put_event(replace(SHOW, paused=True), NOW_US)
    await followed.look()
    await ledger.catalogue.put_event(replace(SHOW, status=EventStatus.CANCELLED), NOW_US)
    assert await followed.look() == {}


async def test_a_restored_ledger_is_read_from_the_beginning(ledger: SqlLedger) -> None:
    followed = Followed(ledger)
    await ledger.catalogue.put_events(list(many_events(3)), NOW_US)
    await followed.look()
    first = followed.follower._next
    followed.follower._next = (first[0] + 1_000, "")
    followed.live.pop("evt_00000001")
    assert len(await followed.look()) == 3
    assert followed.follower._next == first


async def test_numbers_become_visible_in_their_order_whichever_transaction_commits_first(
    postgres_ledger_url: str,
) -> None:
    """PostgreSQL: a slow writer cannot slip a smaller number under one that was read already."""
    import asyncpg

    async with opened(postgres_ledger_url) as ledger:
        await ledger.catalogue.put_events(list(many_events(2)), NOW_US)
        followed = Followed(ledger)
        await followed.look()
        slow = await asyncpg.connect(postgres_ledger_url)
        quick = await asyncpg.connect(postgres_ledger_url)
        change = "UPDATE events SET document = document, changed_at_us = $1 WHERE id = $2 RETURNING change_number"
        try:
            transaction = slow.transaction()
            await transaction.start()
            first = await slow.fetchval(change, 1, "evt_00000000")
            second = asyncio.ensure_future(quick.fetchval(change, 2, "evt_00000001"))
            _, waiting = await asyncio.wait({second}, timeout=0.3)
            assert waiting, "the second writer waits for the first to end"
            await followed.look()
            assert followed.reads == ["catalogue_version"]
            await transaction.commit()
            assert await second == first + 1
            calls = followed.calls
            await followed.look()
            assert followed.calls == calls + 2
        finally:
            await slow.close()
            await quick.close()


async def test_fifty_writers_at_once_get_numbers_of_their_own(ledger_url: str) -> None:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        followed = Followed(one)
        await followed.look()
        events = [replace(SHOW, id=f"evt_{number}") for number in range(50)]
        looks = [followed.follower.sync() for _ in range(10)]
        puts = [(one, two)[number % 2].catalogue.put_event(event, NOW_US) for number, event in enumerate(events)]
        await asyncio.gather(*puts, *looks)
        assert set(await followed.look()) == {event.id for event in events}


async def test_a_follower_runs_through_a_ledger_that_is_away(sqlite_ledger_url: str) -> None:
    async with opened(sqlite_ledger_url) as ledger:
        followed = Followed(ledger)
        follower = CatalogueFollower(ledger.catalogue, followed.open, followed.end, every_s=0.01)
        newest, away = ledger.catalogue.newest_change, 2

        async def flaky() -> int:
            nonlocal away
            if away:
                away -= 1
                raise Unavailable("no answer")
            return await newest()

        ledger.catalogue.newest_change = flaky  # type: ignore[method-assign]
        await ledger.catalogue.put_event(SHOW, NOW_US)
        running = asyncio.create_task(follower.run())
        try:
            await eventually(lambda: followed.live)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert follower.failures == 2
