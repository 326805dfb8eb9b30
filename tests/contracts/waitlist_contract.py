"""The contract of the WaitlistBook port (B11, B14, N4) as plain checks, for SQLite, PostgreSQL and canaries."""

import itertools
from collections.abc import Callable, Coroutine
from typing import Any

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.facts.model import (
    WaitlistJoined,
    WaitlistLeft,
)
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.waitlist.model.offers import NewOffer, Offer
from frontrow.boxoffice.waitlist.model.waitlist import (
    AlreadyWaiting,
    EntryState,
    NewEntry,
    WaitlistEntry,
    WaitOrder,
    WaitRules,
    rules_for,
)
from frontrow.core.errors import FrontrowError
from tests.boxoffice.shop import shop_event
from tests.contracts.ledger_contract import CALLERS, TEN_MINUTES_US, Bench, outcomes, refusal

FIVE_MINUTES_US = 300_000_000
Check = Callable[[Bench], Coroutine[Any, Any, None]]
CHECKS: list[Check] = []
_numbers = itertools.count(1)
ANYWHERE = {"A": 1_000}


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


def wish(bench: Bench, fan: str, count: int = 1, **more: Any) -> NewEntry:
    return NewEntry(f"wle_{next(_numbers):026d}", bench.event, fan, count, **more)


async def join(bench: Bench, fan: str, count: int = 1, **more: Any) -> WaitlistEntry:
    return await bench.one.waitlist.join_waitlist(wish(bench, fan, count, **more), bench.now_us)


def an_offer(bench: Bench, entry: WaitlistEntry, *seats: int, **more: Any) -> NewOffer:
    offer_id, booking_id = entry.next_offer_ids()
    more.setdefault("cap", 10)
    hold = NewHold(
        booking_id,
        bench.event,
        entry.fan,
        seats,
        bench.now_us,
        bench.now_us + FIVE_MINUTES_US,
        5_000 * len(seats),
        "EUR",
        (5_000,) * len(seats),
        offer_id=offer_id,
        **more,
    )
    return NewOffer(offer_id, entry.id, hold)


async def make_offer(ledger: SqlLedger, new: NewOffer) -> Offer:
    """`make_offers` of one offer. The reason of a refused one is raised."""
    (answer,) = await ledger.waitlist.make_offers([new])
    if isinstance(answer, FrontrowError):
        raise answer
    return answer


async def offered(bench: Bench, fan: str, *seats: int) -> Offer:
    entry = await bench.one.waitlist.entry_of_fan(bench.event, fan) or await join(bench, fan, len(seats))
    return await make_offer(bench.one, an_offer(bench, entry, *seats))


async def kinds(bench: Bench) -> list[type]:
    return [type(fact) for fact in await bench.facts()]


async def state_of(bench: Bench, fan: str) -> EntryState | None:
    entry = await bench.two.waitlist.entry_of_fan(bench.event, fan)
    return entry.state if entry else None


async def in_line(bench: Bench, **free: int) -> list[str]:
    return [entry.fan for entry in await bench.two.waitlist.waiting_page(bench.event, free or ANYWHERE, (-1, 0), 100)]


@check
async def the_line_is_in_order_of_joining_and_tells_positions(bench: Bench) -> None:
    entries = [await join(bench, f"f{n}") for n in range(5)]
    assert await in_line(bench) == ["f0", "f1", "f2", "f3", "f4"]
    assert [await bench.two.waitlist.entries_ahead(entry) for entry in entries] == [0, 1, 2, 3, 4]
    await bench.two.waitlist.leave_waitlist(entries[1].id, "f1", bench.now_us)
    assert [await bench.two.waitlist.entries_ahead(entries[n]) for n in (0, 2, 4)] == [0, 1, 3]
    page = await bench.one.waitlist.waiting_page(bench.event, ANYWHERE, (entries[2].rank, entries[2].number), 1)
    assert [entry.fan for entry in page] == ["f3"]
    assert await kinds(bench) == [WaitlistJoined] * 5 + [WaitlistLeft]


@check
async def a_lottery_orders_by_the_published_seed_and_its_rules_are_set_once(bench: Bench) -> None:
    assert await bench.one.waitlist.waitlist_rules(bench.event) == WaitRules(bench.event)
    rules = rules_for(bench.event, WaitOrder.LOTTERY, "a secret of the organiser")
    assert await bench.one.waitlist.put_waitlist_rules(rules, bench.now_us) == rules
    other = rules_for(bench.event, WaitOrder.LOTTERY, "a seed chosen after joining")
    assert await bench.two.waitlist.put_waitlist_rules(other, bench.now_us) == rules, "the rules were changed under way"
    fans = [f"f{n}" for n in range(20)]
    for fan in fans:
        await join(bench, fan, rank=rules.rank(fan))
    assert await in_line(bench) == sorted(fans, key=rules.rank) != fans


@check
async def one_entry_a_fan_in_any_race(bench: Bench) -> None:
    calls = [bench.either(n).waitlist.join_waitlist(wish(bench, "ada", 2), bench.now_us) for n in range(CALLERS)]
    joined, refused = await outcomes(calls)
    assert not refused
    assert len({entry.id for entry in joined}) == 1
    assert await in_line(bench) == ["ada"]
    assert await kinds(bench) == [WaitlistJoined]
    await refusal(join(bench, "ada", 3), AlreadyWaiting)


@check
async def the_line_is_asked_for_those_who_could_fit_only(bench: Bench) -> None:
    await join(bench, "anywhere", 2)
    await join(bench, "in_b", 2, sections=("B", "C"))
    await join(bench, "large", 5)
    await join(bench, "split", 5, split_ok=True)
    assert await in_line(bench, A=2) == ["anywhere", "split"]
    assert await in_line(bench, B=5) == ["anywhere", "in_b", "large", "split"]
    assert await in_line(bench, A=1, B=1) == ["split"]


@check
async def the_last_fan_of_a_seat_is_the_one_of_the_newest_booking(bench: Bench) -> None:
    first = await bench.hold(3, fan="first")
    await bench.one.release_hold(first.booking_id, first.fence, bench.now_us)
    await bench.hold(3, fan="second")
    bench.clock.advance(us=TEN_MINUTES_US)  # dead, unswept
    await bench.hold(4, fan="third")
    assert await bench.two.waitlist.last_fans(bench.event, [3, 4, 5]) == {3: "second", 4: "third"}


@check
async def a_look_counts_live_seats_and_sees_whether_anybody_waits(bench: Bench) -> None:
    look = await bench.one.waitlist.read_waitlist_summary(bench.event, bench.now_us)
    assert (look.taken, look.waiting) == (0, False)
    await bench.paid(1, 2)
    await join(bench, "ada")
    look = await bench.one.waitlist.read_waitlist_summary(bench.event, bench.now_us)
    assert (look.taken, look.waiting) == (2, True)
    look = await bench.one.waitlist.read_waitlist_summary(bench.event, bench.now_us + TEN_MINUTES_US)
    assert look.taken == 0


@check
async def an_events_status_shifts_once_and_never_over_a_change(bench: Bench) -> None:
    await bench.one.catalogue.put_event(shop_event(id=bench.event, withheld=frozenset({9, 4})), bench.now_us)
    on, out = EventStatus.ON_SALE, EventStatus.SOLD_OUT
    shifted, _ = await outcomes(
        [bench.either(n).waitlist.shift_event(bench.event, on, out, bench.now_us) for n in range(CALLERS)]
    )
    assert len([event for event in shifted if event is not None]) == 1
    event = await bench.two.catalogue.event(bench.event)
    assert (event.status, event.withheld) == (out, frozenset({4, 9}))
    assert [e.id for e in await bench.one.catalogue.events(out) if e.id == bench.event] == [bench.event]
    assert await bench.one.waitlist.shift_event("evt_none", on, out, bench.now_us) is None
