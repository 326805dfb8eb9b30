"""Webhooks to organisers (B15): signed, retried for three days, isolated from each other, harmless when repeated."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.messages.message_book import SqlMessageBook
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.messages.deliveries import DeliveryWorker, NoteDelivery
from frontrow.boxoffice.messages.delivery_retries import apply_outcome
from frontrow.boxoffice.messages.model.messages import Delivery, DeliveryState, Endpoint, NewDelivery, Outcome
from frontrow.boxoffice.messages.organiser_webhooks import GIVE_UP_AFTER_S, KIND, OrganiserWebhooks
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.client import check_signature
from frontrow.shared.ids import Ids
from frontrow.shared.vault import Vault
from frontrow.shared.webhook_signature import sign
from frontrow.testing.clock import ManualClock
from tests.boxoffice.messages.outbox import NOW, confirmed
from tests.boxoffice.messages.receivers import HttpReceiver, http_receiver
from tests.boxoffice.shop import sqlite_url
from tests.support.eventually import eventually


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    one = await open_ledger(sqlite_url(tmp_path))
    yield one
    await one.aclose()


@pytest.fixture
async def receiver() -> AsyncIterator[HttpReceiver]:
    async with http_receiver() as one:
        yield one


@pytest.fixture
async def outgoing() -> AsyncIterator[SafeHttpClient]:
    one = SafeHttpClient(allow_http=True, trusted=frozenset({"127.0.0.1"}), timeout_s=60.0)
    yield one
    await one.aclose()


async def planned(hooks: OrganiserWebhooks, ledger: SqlLedger, *numbers: int, event: str = "evt_1") -> None:
    for number in numbers:
        await ledger.messages.once("hooks", str(number), await hooks.plan(number, confirmed(number, event)), NOW)


def endpoint(receiver: HttpReceiver, organiser: str = "org_1", **more: object) -> Endpoint:
    values: dict[str, object] = {"id": f"whk_{organiser}", "organiser": organiser, "event_id": "evt_1"}
    values |= {"secret": f"s {organiser}", "url": f"http://127.0.0.1:{receiver.port}/{organiser}"}
    return Endpoint(**(values | more))  # type: ignore[arg-type]


async def test_many_facts_of_one_event_read_its_endpoints_once(
    ledger: SqlLedger, receiver: HttpReceiver, outgoing: SafeHttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of 50 facts made 50 equal reads whenever the cache had run out."""
    await ledger.messages.put_endpoint(endpoint(receiver), NOW)
    reads: list[str] = []
    read = ledger.messages.endpoints_of

    async def counted(event_id: str) -> list[Endpoint]:
        reads.append(event_id)
        return await read(event_id)

    monkeypatch.setattr(ledger.messages, "endpoints_of", counted)
    hooks = OrganiserWebhooks(ledger.messages, outgoing, ManualClock(NOW))
    planned = await asyncio.gather(*(hooks.plan(number, confirmed(number)) for number in range(50)))
    assert (reads, [len(queries) for queries in planned]) == (["evt_1"], [1] * 50)


async def test_a_fact_arrives_signed_and_only_the_wanted_ones(
    ledger: SqlLedger, receiver: HttpReceiver, outgoing: SafeHttpClient
) -> None:
    clock = ManualClock(NOW)
    hooks = OrganiserWebhooks(ledger.messages, outgoing, clock)
    await ledger.messages.put_endpoint(endpoint(receiver), NOW)
    await ledger.messages.put_endpoint(endpoint(receiver, "org_2", facts=("BookingRefunded",)), NOW)
    await ledger.messages.put_endpoint(endpoint(receiver, "org_3", active=False), NOW)
    await ledger.messages.put_endpoint(endpoint(receiver, "org_4", event_id="evt_2"), NOW)
    await planned(hooks, ledger, 1)
    await planned(hooks, ledger, 1)
    assert await hooks.worker().drain() == 1
    (line, headers, body), *others = receiver.calls
    assert (line, others) == ("POST /org_1 HTTP/1.1", [])
    told = msgspec.json.decode(body)
    assert (told["id"], told["type"], told["fact"]["booking_id"]) == ("fct_1", "BookingConfirmed", "bkg_1")
    header = headers["frontrow-signature"]
    assert check_signature(header, "s org_1", body, now_s=NOW / 1e6)
    assert headers["frontrow-delivery"] == "webhook:whk_org_1:1"
    for secret, changed, now_us in [
        ("s org_2", body, NOW),
        ("s org_1", body + b" ", NOW),
        ("s org_1", body, NOW + 301_000_000),
        ("s org_1", body, NOW - 301_000_000),
    ]:
        assert not check_signature(header, secret, changed, now_s=now_us / 1e6)
    for broken in (None, "", "t=1", "v1=ab", "t=x,v1=y", header.replace("v1=", "v1=é"), sign(body, "s org_1", 10**6)):
        assert not check_signature(broken, "s org_1", body, now_s=NOW / 1e6)
    assert await ledger.messages.delivery_counts(KIND) == {"sent": 1}


async def test_a_webhook_gets_nothing_that_happened_before_it_was_registered(
    ledger: SqlLedger, receiver: HttpReceiver, outgoing: SafeHttpClient
) -> None:
    """A bus that lost its memory brings facts again for which nobody was registered."""
    hooks = OrganiserWebhooks(ledger.messages, outgoing, ManualClock(NOW))
    for minutes in (-5, 5):
        made = Ids(ManualClock(NOW + minutes * 60_000_000)).new("whk")
        await ledger.messages.put_endpoint(endpoint(receiver, f"org_{minutes}", id=made), NOW)
    await planned(hooks, ledger, 1)
    await hooks.worker().drain()
    assert [line for line, _, _ in receiver.calls] == ["POST /org_-5 HTTP/1.1"]


async def test_a_receiver_that_is_down_is_tried_for_three_days_with_growing_pauses(
    ledger: SqlLedger, receiver: HttpReceiver, outgoing: SafeHttpClient
) -> None:
    clock = ManualClock(NOW)
    hooks = OrganiserWebhooks(ledger.messages, outgoing, clock)
    await ledger.messages.put_endpoint(endpoint(receiver), NOW)
    receiver.answer = lambda headers, body: "503 Busy"
    await planned(hooks, ledger, 1)
    worker, tried_at_us = hooks.worker(), []
    for _ in range(3 * 24 * 6 + 6):  # a look every ten minutes
        if await worker.drain():
            tried_at_us.append(clock())
        clock.advance(600)
    gaps_s = [(b - a) // 1_000_000 for a, b in itertools.pairwise(tried_at_us)]
    assert 20 <= len(tried_at_us) <= 40
    assert max(gaps_s) <= 4 * 3600 * 1.25
    assert tried_at_us[-1] - NOW > (GIVE_UP_AFTER_S - 5 * 3600) * 1_000_000
    assert await ledger.messages.delivery_counts(KIND) == {"given_up": 1}
    assert len({call[1]["frontrow-delivery"] for call in receiver.calls}) == 1


async def test_one_organisers_dead_receiver_delays_nobody_else(
    ledger: SqlLedger, receiver: HttpReceiver, outgoing: SafeHttpClient
) -> None:
    """A queue that hangs is worked on alone; 200 facts of the other organiser arrive meanwhile."""
    clock = ManualClock(NOW)
    hooks = OrganiserWebhooks(ledger.messages, outgoing, clock)
    stuck, free = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stuck.set()
        await free.wait()
        writer.close()

    dead = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{dead.sockets[0].getsockname()[1]}/"
    await ledger.messages.put_endpoint(Endpoint("whk_dead", "org_dead", "evt_1", url, "s"), NOW)
    await ledger.messages.put_endpoint(endpoint(receiver, "org_live"), NOW)
    await planned(hooks, ledger, *range(1, 201))
    worker = hooks.worker()
    await worker.round()
    await stuck.wait()

    async def delivered() -> int:
        count = len({call[1]["frontrow-delivery"] for call in receiver.calls})
        if count < 200:
            await worker.round()
        return count

    await eventually(delivered, until=lambda count: count == 200)
    assert len(receiver.calls) == 200
    assert not free.is_set()
    free.set()
    await worker.wait_for_queues()
    dead.close()
    await dead.wait_closed()
    assert (await ledger.messages.delivery_counts(KIND))["sent"] == 200


async def test_a_gone_receiver_and_a_gone_endpoint_end_the_delivery(
    ledger: SqlLedger, receiver: HttpReceiver, outgoing: SafeHttpClient
) -> None:
    clock = ManualClock(NOW)
    hooks = OrganiserWebhooks(ledger.messages, outgoing, clock)
    await ledger.messages.put_endpoint(endpoint(receiver), NOW)
    receiver.answer = lambda headers, body: "410 Gone"
    await planned(hooks, ledger, 1, 2)
    await hooks.worker().drain()
    assert await ledger.messages.delivery_counts(KIND) == {"given_up": 2}
    await planned(hooks, ledger, 3)
    await ledger.messages.put_endpoint(endpoint(receiver, active=False), NOW)
    await hooks.worker().drain()
    assert await ledger.messages.delivery_counts(KIND) == {"given_up": 3}
    assert len(receiver.calls) == 2


async def test_a_private_url_is_never_called_however_it_got_into_the_ledger(ledger: SqlLedger) -> None:
    clock = ManualClock(NOW)
    safe = SafeHttpClient()
    hooks = OrganiserWebhooks(ledger.messages, safe, clock)
    async with http_receiver() as inside:
        await ledger.messages.put_endpoint(endpoint(inside, url=f"https://127.0.0.1:{inside.port}/"), NOW)
        await planned(hooks, ledger, 1)
        await hooks.worker().drain()
        assert inside.calls == []
    assert await ledger.messages.delivery_counts(KIND) == {"waiting": 1}
    await safe.aclose()


async def test_fifty_workers_send_each_delivery_once(bench) -> None:  # type: ignore[no-untyped-def]
    """Claims on both stores: 50 workers, 300 deliveries in 30 queues, nobody sends one twice."""
    clock = ManualClock(NOW)
    new = [NewDelivery("x", f"queue {n % 30}", f"x:{n}", "") for n in range(300)]
    await bench.one.messages.once("t", "1", bench.one.messages.make_delivery_writes(new, NOW), NOW)
    sent: list[int] = []

    async def send(deliveries: list[Delivery], note: NoteDelivery) -> list[Outcome]:
        assert len({one.queue for one in deliveries}) == 1
        sent.extend(one.number for one in deliveries)
        await asyncio.sleep(0)
        return [Outcome(True)] * len(deliveries)

    workers = [
        DeliveryWorker("x", bench.either(n).messages, clock, send, give_up_after_s=60, per_queue=3)  # type: ignore[arg-type]
        for n in range(50)
    ]
    for _ in range(100):
        if not sum(await asyncio.gather(*(worker.drain() for worker in workers))):
            break
    assert len(sent) == len(set(sent)) == 300
    assert await bench.one.messages.delivery_counts("x") == {"sent": 300}


async def test_a_worker_that_sends_for_long_keeps_its_claim(ledger: SqlLedger) -> None:
    """So claims can be short: the deliveries of a killed worker waited two minutes."""
    clock, book = ManualClock(NOW), ledger.messages
    await book.once("t", "1", book.make_delivery_writes([NewDelivery("x", "a", "x:1", "")], NOW), NOW)
    sending, renewed = asyncio.Event(), asyncio.Event()

    async def send(deliveries: Sequence[Delivery], note: NoteDelivery) -> list[Outcome]:
        await sending.wait()
        return [Outcome(True)] * len(deliveries)

    async def renew(numbers: Sequence[int], now_us: int, claim_us: int) -> None:
        await SqlMessageBook.renew_deliveries(book, numbers, now_us, claim_us)
        renewed.set()

    book.renew_deliveries = renew  # type: ignore[method-assign]
    worker = DeliveryWorker("x", book, clock, send, give_up_after_s=60, claim_s=0.2)
    assert await worker.round() == 1
    for _ in range(3):
        clock.advance(0.1)
        renewed.clear()
        await asyncio.wait_for(renewed.wait(), 30)
    assert await book.claim_deliveries("x", clock(), 1_000, 10, 10) == []
    sending.set()
    await worker.wait_for_queues()
    assert await book.delivery_counts("x") == {"sent": 1}


async def test_a_worker_that_dies_after_sending_sends_again_when_the_claim_ends(ledger: SqlLedger) -> None:
    clock = ManualClock(NOW)
    await ledger.messages.once(
        "t", "1", ledger.messages.make_delivery_writes([NewDelivery("x", "a", "x:1", "")], NOW), NOW
    )
    claimed = await ledger.messages.claim_deliveries("x", NOW, 1_000, 10, 10)
    assert len(claimed) == 1  # sent, and then the process died
    assert await ledger.messages.claim_deliveries("x", NOW + 999, 1_000, 10, 10) == []
    again = await ledger.messages.claim_deliveries("x", NOW + 1_000, 1_000, 10, 10)
    assert [one.dedupe for one in again] == ["x:1"]
    await ledger.messages.save_delivery_results([apply_outcome(again[0], Outcome(True), clock(), 60)], NOW)
    await ledger.messages.save_delivery_results(
        [apply_outcome(claimed[0], Outcome(False, final=False), clock(), 60)], NOW
    )
    assert await ledger.messages.delivery_counts("x") == {"sent": 1}, "what was sent stays sent"


def test_pauses_double_up_to_a_bound_and_end_with_the_time() -> None:
    delivery = Delivery(1, "x", "l", "d", "", 0, NOW)
    first = apply_outcome(delivery, Outcome(False, final=False, reason="r" * 999), NOW, 60)
    assert first.state is DeliveryState.WAITING
    assert 5_000_000 <= first.next_at_us - NOW <= 6_000_000
    assert len(first.reason) == 300
    late = Delivery(1, "x", "l", "d", "", 40, NOW)
    assert apply_outcome(late, Outcome(False, final=False), NOW, 10**6).next_at_us - NOW <= 1.2 * 4 * 3600 * 1_000_000
    assert apply_outcome(late, Outcome(False, final=False), NOW, 60).state is DeliveryState.GIVEN_UP
    assert apply_outcome(delivery, Outcome(False), NOW, 10**6).state is DeliveryState.GIVEN_UP


async def test_secrets_are_sealed_in_the_ledger_and_still_sign(
    ledger: SqlLedger, receiver: HttpReceiver, outgoing: SafeHttpClient
) -> None:
    """Also those that an earlier version stored as they were. Another key signs nothing, and later ones are tried."""
    clock, sealing = ManualClock(NOW), EndpointSecrets(Vault([bytes(32)]))
    plain = endpoint(receiver)
    await ledger.messages.put_endpoint(plain, NOW)
    assert [await sealing.seal_existing(ledger.messages, NOW) for _ in range(2)] == [1, 0]
    kept = await ledger.messages.endpoint(plain.id)
    assert kept is not None
    assert plain.secret not in kept.secret
    hooks = OrganiserWebhooks(ledger.messages, outgoing, clock, sealing)
    await planned(hooks, ledger, 1)
    for secrets in (EndpointSecrets(Vault([b"x" * 32])), EndpointSecrets()):
        waiting = Delivery(1, KIND, "org_1", "d", f'{{"endpoint":"{plain.id}","payload":""}}', 0, NOW)
        (told,) = await OrganiserWebhooks(ledger.messages, outgoing, clock, secrets).send([waiting])
        assert (told.sent, told.final) == (False, False)
        assert "FRONTROW_SECRET_KEY" in told.reason
    assert await hooks.worker().drain() == 1
    ((_, headers, body),) = receiver.calls
    assert check_signature(headers["frontrow-signature"], plain.secret, body, now_s=NOW / 1e6)
