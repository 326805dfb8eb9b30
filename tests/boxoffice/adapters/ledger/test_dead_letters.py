"""B15: dead letters are listed and tried again, by the consumer that failed and no other (SQLite and PostgreSQL)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.bus.memory import MemoryBus
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.messages.dead_letters import DeadLetterNotFound
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.model import BusFact, Fact
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.messages.deliveries import DeliveryWorker, NoteDelivery
from frontrow.boxoffice.messages.model.messages import Delivery, NewDelivery, Outcome
from frontrow.cli.ledger import app
from frontrow.core.errors import InvalidInput
from frontrow.testing.clock import ManualClock
from tests.boxoffice.messages.outbox import NOW, confirmed, put_facts
from tests.boxoffice.shop import sqlite_url
from tests.contracts.ledger_contract import CALLERS, outcomes


@pytest.fixture
async def ledger(ledger_url: str) -> AsyncIterator[SqlLedger]:
    one = await open_ledger(ledger_url)
    yield one
    await one.aclose()


class Shop:
    """Two consumers of one bus; the first cannot handle `bad` bookings."""

    def __init__(self, ledger: SqlLedger, bus: MemoryBus, clock: ManualClock) -> None:
        self.bad = {"bkg_1"}
        self.seen: list[str] = []
        self.bus, self.relay, self.book = bus, OutboxRelay(ledger, bus, clock), ledger.messages
        self.weak = FactConsumer("weak", bus, ledger.messages, clock, self._weak, wait_s=0.0)
        self.strong = FactConsumer("strong", bus, ledger.messages, clock, self._strong, wait_s=0.0)

    async def _weak(self, number: int, fact: Fact) -> list[Query]:
        if fact.booking_id in self.bad:
            raise KeyError("no template")
        self.seen.append(fact.booking_id)
        return []

    async def _strong(self, number: int, fact: Fact) -> list[Query]:
        new = NewDelivery("notice", "queue", f"of fact {number}", "{}")
        return self.book.make_delivery_writes([new], NOW)

    async def turn(self) -> None:
        await self.relay.relay_pending()
        for consumer in (self.weak, self.strong):
            await consumer.work(await self.bus.reader(consumer.name))


@pytest.mark.parametrize("purged", [False, True], ids=["in the outbox", "purged"])
async def test_a_dead_letter_is_handled_once_it_can_be_and_only_where_it_failed(
    ledger: SqlLedger, purged: bool
) -> None:
    clock = ManualClock(NOW)
    shop = Shop(ledger, MemoryBus(["weak", "strong"]), clock)
    await put_facts(ledger, [confirmed(1), confirmed(2)])
    await shop.turn()
    (letter,) = await ledger.dead_letters.page()
    assert (letter.kind, letter.queue, letter.reason) == ("poison", "weak", "KeyError: 'no template'")
    if purged:
        await ledger.purge_facts(NOW + 1, 100)
    await ledger.dead_letters.retry(letter.number, clock())
    assert await ledger.dead_letters.page() == []
    await shop.turn()
    (again,) = await ledger.dead_letters.page()
    assert again.number != letter.number, "still broken: a dead letter again"
    shop.bad.clear()
    tries = await outcomes([ledger.dead_letters.retry(again.number, clock()) for _ in range(CALLERS)])
    assert (len(tries[0]), {type(error) for error in tries[1]}) == (1, {DeadLetterNotFound})
    await shop.turn()
    assert shop.seen == ["bkg_2", "bkg_1"]
    assert (shop.strong.handled, shop.strong.repeated) == (2, 2), "the other one knows it"
    assert await ledger.dead_letters.page() == []


async def test_what_is_no_fact_stays_a_dead_letter(ledger: SqlLedger) -> None:
    """Published again it would stop the relay, which has to read it."""
    shop = Shop(ledger, MemoryBus(["weak", "strong"]), ManualClock(NOW))
    await shop.bus.publish([BusFact(99, "k", b'{"fact":"FromTheFuture"}')])
    await shop.weak.work(await shop.bus.reader("weak"))
    (letter,) = await ledger.dead_letters.page()
    with pytest.raises(InvalidInput):
        await ledger.dead_letters.retry(letter.number, NOW)
    assert await ledger.dead_letters.page() == [letter]


async def test_a_delivery_given_up_is_sent_when_tried_again(ledger: SqlLedger) -> None:
    clock, sent, works = ManualClock(NOW), list[str](), False

    async def send(deliveries: list[Delivery], note: NoteDelivery) -> list[Outcome]:
        sent.extend(one.dedupe for one in deliveries if works)
        return [Outcome(works, final=True, reason="410")] * len(deliveries)

    worker = DeliveryWorker("webhook", ledger.messages, clock, send, give_up_after_s=60)  # type: ignore[arg-type]
    await ledger.messages.once(
        "c", "1", ledger.messages.make_delivery_writes([NewDelivery("webhook", "org", "d1", "{}")], NOW), NOW
    )
    await worker.drain()
    (letter,) = await ledger.dead_letters.page()
    assert (letter.dedupe, letter.reason, letter.attempts) == ("d1", "410", 1)
    clock.advance(3600)
    await ledger.dead_letters.retry(letter.number, clock())
    works = True
    await worker.drain()
    assert (sent, await ledger.dead_letters.page()) == (["d1"], [])
    with pytest.raises(DeadLetterNotFound):
        await ledger.dead_letters.retry(letter.number, clock())


async def test_the_command_lists_and_retries(tmp_path: Path) -> None:
    url, clock = sqlite_url(tmp_path), ManualClock(NOW)
    ledger = await open_ledger(url)
    shop = Shop(ledger, MemoryBus(["weak", "strong"]), clock)
    await put_facts(ledger, [confirmed(1)])
    await shop.turn()
    run = CliRunner().invoke

    async def said(*words: str) -> tuple[int, str]:
        done = await asyncio.to_thread(run, app, ["dead-letters", *words, "--ledger", url])
        return done.exit_code, done.output

    code, listed = await said("list")
    assert code == 0
    assert "poison\tweak\tpoison:weak:1\tKeyError: 'no template'" in listed
    assert listed.endswith("dead letters: 1\n")
    assert '"reason":"KeyError' in (await said("list", "--json"))[1]
    assert (await said("retry"))[0] == 2
    assert (await said("retry", "77"))[0] == 1
    assert await said("retry", "--all") == (0, "1 will be tried again\n")
    assert (await said("list"))[1] == "dead letters: 0\n"
    await ledger.aclose()
