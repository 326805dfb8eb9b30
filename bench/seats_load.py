"""The load of bench/seats.py: a box office on real servers, 50,000 seats, and attempts in phases with their CPU.

Phases that end all attempts in one way (refused locally, refused by the claim store, won) give the CPU of each; the
storm mixes them as a sale does: 6.6 attempts a seat, in random order.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil

from frontrow.boxoffice.feed.log import MemoryFrameLog
from frontrow.boxoffice.feed.service import MapFeed
from frontrow.boxoffice.feed.truth import ClaimsTruth
from frontrow.boxoffice.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.model.attempts import ShopPass
from frontrow.boxoffice.model.claims import ClaimKind, TakenSeat
from frontrow.boxoffice.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.model.holds import SeatsTaken
from frontrow.boxoffice.model.venues import Plan
from frontrow.boxoffice.ports import SeatClaims
from frontrow.boxoffice.services.hold import HoldService
from frontrow.boxoffice.services.recovery import Recovery
from frontrow.boxoffice.services.sales import Sales
from frontrow.core.clock import SystemClock
from frontrow.core.errors import FrontrowError
from frontrow.core.money import Money

ATTEMPTS_A_SEAT = 6.6
IN_FLIGHT = 3_000  # closed-loop phases keep at most so many attempts waiting


class Office:
    """One server of the box office over these stores, all its work in this process."""

    def __init__(
        self, event_id: str, plan: Plan, claims: SeatClaims, ledger: SqlLedger, *, hold_ttl_s: int = 600
    ) -> None:
        self.clock = SystemClock()
        tiers = tuple(PriceTier(key, Money(5000, "EUR")) for key in plan.tiers)
        self.event = Event(
            event_id, "Bench", "ven_1", "0" * 64, "EUR", self.clock() * 2, 0, self.clock() * 2, tiers,
            EventStatus.ON_SALE, max_per_person=8, hold_ttl_s=hold_ttl_s, lonely_rule_until_percent=0,
        )  # fmt: skip
        self.plan, self.claims, self.ledger = plan, claims, ledger
        self.sales = Sales()
        self.sale = self.sales.open(self.event, plan)
        claims.learn(event_id, plan)
        self.recovery = Recovery(self.sales, claims, ledger, self.clock)
        truth = ClaimsTruth(claims, self.event, plan.size, self.clock)
        seats = self.sale.seats
        self.feed = MapFeed(
            plan.size,
            MemoryFrameLog(epoch=1),
            truth,
            on_changes=seats.observe,
            on_sync=lambda: seats.follow(self.feed.ring.states, self.clock()),
        )
        self.holds = HoldService(
            self.sales, claims, ledger, self.clock, on_change=lambda _, changed: self.feed.notify(changed)
        )

    def passes(self, count: int) -> list[ShopPass]:
        ends_us = self.clock() + 3600 * 1_000_000
        return [ShopPass(self.event.id, f"fan{number}", ends_us, f"ps_{number}") for number in range(count)]

    def attempts(self, count: int, seed: int) -> list[tuple[str]]:
        """So many single seats, drawn at random."""
        draw = random.Random(seed)
        ids = self.plan.seat_ids
        return [(ids[draw.randrange(len(ids))],) for _ in range(count)]

    def forget(self) -> None:
        """Believe that everything is free."""
        self.sale.seats.freed(range(self.plan.size))


@dataclass
class Meter:
    """CPU seconds of this process and of the servers, and wall seconds, between start and stop."""

    servers: dict[str, list[int]]
    used: dict[str, float] = field(default_factory=dict)
    wall_s: float = 0.0

    def __enter__(self) -> "Meter":
        self._before = self._read()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = time.perf_counter() - self._wall
        self.used = {name: after - self._before[name] for name, after in self._read().items()}

    def _read(self) -> dict[str, float]:
        now = {"service": time.process_time()}
        for name, pids in self.servers.items():
            now[name] = sum(_cpu_s(psutil.Process(pid)) for pid in pids)
        return now

    def per_us(self, count: int) -> dict[str, float]:
        return {name: round(spent / count * 1e6, 2) for name, spent in self.used.items()}


def _cpu_s(process: psutil.Process) -> float:
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


@dataclass
class Outcome:
    """How attempts ended, and how long each took from the moment it should have been sent."""

    won: int = 0
    refused_locally: int = 0
    refused: int = 0
    failed: int = 0
    waits_us: list[int] = field(default_factory=list)
    won_waits_us: list[int] = field(default_factory=list)


async def closed_loop(office: Office, seats: Sequence[tuple[str]], passes: Sequence[ShopPass]) -> Outcome:
    """All attempts as fast as they go, at most IN_FLIGHT of them waiting."""
    outcome = Outcome()
    flying: set[asyncio.Task[None]] = set()
    refusal, event_id = office.holds.refusal, office.event.id
    for number, wanted in enumerate(seats):
        if refusal(event_id, passes[number], wanted) is not None:
            outcome.refused_locally += 1
        else:
            task = asyncio.create_task(_place(office, wanted, passes[number], outcome))
            flying.add(task)
            task.add_done_callback(flying.discard)
        if number % 64 == 0:
            await asyncio.sleep(0)  # answers get their turn
            while len(flying) >= IN_FLIGHT:  # noqa: ASYNC110 - the tasks are the event
                await asyncio.sleep(0.0005)
    while flying:
        await asyncio.wait(flying)
    return outcome


async def open_loop(office: Office, seats: Sequence[tuple[str]], passes: Sequence[ShopPass], rate: float) -> Outcome:
    """Attempts at their own times, whether the service keeps up or not; waits count from the intended moment."""
    outcome = Outcome()
    flying: set[asyncio.Task[None]] = set()
    refusal, event_id = office.holds.refusal, office.event.id
    begin = time.perf_counter() + 0.01
    sent, total = 0, len(seats)
    while sent < total:
        now = time.perf_counter()
        due = min(total, max(0, int((now - begin) * rate) + 1))
        for number in range(sent, due):
            intended = begin + number / rate
            if refusal(event_id, passes[number], seats[number]) is not None:
                outcome.refused_locally += 1
                outcome.waits_us.append(round((time.perf_counter() - intended) * 1e6))
                continue
            task = asyncio.create_task(_place(office, seats[number], passes[number], outcome, intended))
            flying.add(task)
            task.add_done_callback(flying.discard)
        sent = max(sent, due)
        await asyncio.sleep(0 if sent < total and int((time.perf_counter() - begin) * rate) >= sent else 0.0005)
    while flying:
        await asyncio.wait(flying)
    return outcome


async def _place(
    office: Office, wanted: tuple[str], shop_pass: ShopPass, outcome: Outcome, intended: float = 0.0
) -> None:
    won = False
    try:
        await office.holds.place(office.event.id, shop_pass, wanted)
        outcome.won += 1
        won = True
    except SeatsTaken:
        outcome.refused += 1
    except FrontrowError:
        outcome.failed += 1
    if intended:
        wait_us = round((time.perf_counter() - intended) * 1e6)
        outcome.waits_us.append(wait_us)
        if won:
            outcome.won_waits_us.append(wait_us)


async def phases(office: Office, servers: dict[str, list[int]], count: int) -> dict[str, Any]:
    """CPU of each way an attempt can end, from attempts that all end that way."""
    passes = office.passes(count)
    ids = office.plan.seat_ids
    fresh = [(ids[number],) for number in range(count)]
    report: dict[str, Any] = {}

    async def phase(name: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        with Meter(servers) as meter:
            outcome = await work()
        report[name] = {
            "attempts": count,
            "per_s": round(count / meter.wall_s),
            "cpu_us": meter.per_us(count),
            "ended": [outcome.won, outcome.refused_locally, outcome.refused, outcome.failed],
        }

    await phase("won", lambda: closed_loop(office, fresh, passes))
    other = [ShopPass(one.event_id, f"other{one.fan}", one.expires_at_us, one.id) for one in passes]
    office.forget()
    await phase("refused by claims", lambda: closed_loop(office, fresh, other))
    now_us = office.clock()
    office.sale.seats.learn(
        [TakenSeat(seat, ClaimKind.SOLD, "x", "x", 0, 0) for seat in range(count)], now_us + 3600 * 1_000_000
    )
    await phase("refused locally", lambda: closed_loop(office, fresh, other))
    return report


def percentiles(waits_us: list[int]) -> dict[str, float]:
    """p50, p99, p99.9 in milliseconds."""
    ordered = sorted(waits_us) or [0]
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000, 2)
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }
