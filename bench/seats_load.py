"""The load of bench/seats.py: a box office on real servers, 50,000 seats, and attempts in phases with their CPU.

Phases that end all attempts in one way (refused locally, refused by the claim store, won) give the CPU of each; the
storm mixes them as a sale does: 6.6 attempts a seat, in random order.
"""

import asyncio
import random
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psutil

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.model.claims import ClaimKind, TakenSeat
from frontrow.boxoffice.holds.model.holds import SeatsTaken, ShopPass
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.seats.map.frame_log import MemoryFrameLog
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.seats.map.seat_states import ClaimStates
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.seats.ports.seat_map import FrameLog
from frontrow.core.clock import SystemClock
from frontrow.shared import gc_tuning
from frontrow.shared.money import Money

ATTEMPTS_A_SEAT = 6.6
IN_FLIGHT = 3_000  # a storm keeps at most so many attempts waiting
TURN = 128  # attempts that arrive in one turn of the event loop, at most
Ask = tuple[ShopPass, tuple[str]]


class Office:
    """One server of the box office over these stores, all its work in this process."""

    def __init__(
        self,
        event_id: str,
        plan: Plan,
        claims: SeatClaims,
        ledger: SqlLedger,
        *,
        hold_ttl_s: int = 600,
        log: FrameLog | None = None,
        attempts: type[AttemptRunner] | type[PlainAttempts] = AttemptRunner,
    ) -> None:
        self.clock = SystemClock()
        tiers = tuple(PriceTier(key, Money(5000, "EUR")) for key in plan.tiers)
        self.event = Event(
            event_id,
            "Bench",
            "ven_1",
            "0" * 64,
            "EUR",
            self.clock() * 2,
            0,
            self.clock() * 2,
            tiers,
            EventStatus.ON_SALE,
            max_per_person=8,
            hold_ttl_s=hold_ttl_s,
            lonely_rule_until_percent=0,
        )
        self.plan, self.claims, self.ledger = plan, claims, ledger
        self.sales = Sales()
        self.sale = self.sales.open(self.event, plan)
        claims.learn(event_id, plan)
        self.recovery = Recovery(self.sales, claims, ledger, self.clock)
        seats = self.sale.seats
        read_states = ClaimStates(claims, self.event, plan.size, self.clock, seats)
        self.feed = MapFeed(
            plan.size,
            log or MemoryFrameLog(epoch=1),
            read_states,
            on_changes=lambda states: self.feed.request_owners(seats.apply_map_changes(states)),
            on_sync=lambda: seats.trust_map(self.feed.ring.states, self.clock()),
        )
        self.holds = HoldService(
            self.sales,
            claims,
            ledger,
            self.clock,
            on_change=lambda _, changed: self.feed.notify(changed),
            attempts=attempts,
        )

    def passes(self, count: int) -> list[ShopPass]:
        ends_us = self.clock() + 3600 * 1_000_000
        return [ShopPass(self.event.id, f"fan{number}", ends_us, f"ps_{number}") for number in range(count)]

    def asks(self, count: int, seed: int, name: str = "fan") -> list[Ask]:
        """So many attempts of different fans for single seats, drawn at random."""
        draw = random.Random(seed)
        ids, ends_us = self.plan.seat_ids, self.clock() + 3600 * 1_000_000
        seats = [(seat,) for seat in ids]
        return [
            (ShopPass(self.event.id, f"{name}{n}", ends_us, f"ps_{n}"), seats[draw.randrange(len(ids))])
            for n in range(count)
        ]

    def forget(self) -> None:
        """Make the seat cache show every seat as free."""
        self.sale.seats.mark_free(range(self.plan.size))


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
    waits_us: "array[int]" = field(default_factory=lambda: array("q"))
    won_waits_us: "array[int]" = field(default_factory=lambda: array("q"))


def tidy() -> None:
    """As a server does after it started."""
    gc_tuning.freeze_after_startup()


class Crowd:
    """Attempts built beforehand and sent in turns of the event loop. The service's work is `refusal` and `attempt`.

    As on the fast path, `refusal` is asked first, once per attempt. The futures of the other attempts call back. No
    attempt costs a task.
    """

    def __init__(self, office: Office, asks: Sequence[Ask]) -> None:
        self.office, self.asks = office, asks
        self.outcome = Outcome()
        self.flying = 0
        self._room = asyncio.Event()
        self._begin = self._rate = 0.0

    async def storm(self, times: int = 1) -> Outcome:
        """All attempts as fast as they go, so many times over, at most IN_FLIGHT of them waiting."""
        for first in list(range(0, len(self.asks), TURN)) * times:
            self._turn(first, min(first + TURN, len(self.asks)))
            await asyncio.sleep(0)  # answers get their turn
            await self._until(IN_FLIGHT)
        await self._until(1)
        return self.outcome

    async def at_rate(self, rate: float, seconds: float = 3600.0) -> Outcome:
        """At their own times, whether the service keeps up or not; the list is begun again when it ends."""
        self._rate, self._begin = rate, time.perf_counter() + 0.01
        sent, total = 0, int(rate * seconds) if seconds < 3600 else len(self.asks)
        while sent < total:
            due = min(total, sent + TURN, int((time.perf_counter() - self._begin) * rate) + 1)
            if due > sent:
                self._turn(sent, due)
                sent = due
            behind = int((time.perf_counter() - self._begin) * rate) > sent
            await asyncio.sleep(0 if behind else 0.001)  # shorter ones uvloop takes for 0: the loop would spin
        await self._until(1)
        return self.outcome

    def _turn(self, first: int, last: int) -> None:
        size = len(self.asks)
        asks = self.asks[first % size : first % size + last - first] if size else []
        refusal, attempt = self.office.holds.refusal, self.office.holds.attempt
        event_id, outcome = self.office.event.id, self.outcome
        for number, (shop_pass, seats) in enumerate(asks, start=first):
            if refusal(event_id, shop_pass, seats) is not None:
                outcome.refused_locally += 1
                if self._rate:
                    wait_s = time.perf_counter() - self._begin - number / self._rate
                    outcome.waits_us.append(int(wait_s * 1e6))
                continue
            answer = attempt(event_id, shop_pass, seats)
            if isinstance(answer, SeatsTaken):
                outcome.refused_locally += 1
            else:
                self.flying += 1
                answer.add_done_callback(partial(self._heard, number))

    def _heard(self, number: int, answer: "asyncio.Future[Any]") -> None:
        outcome = self.outcome
        wait_us = int((time.perf_counter() - self._begin - number / self._rate) * 1e6) if self._rate else 0
        if answer.exception() is not None:
            outcome.failed += 1
        elif isinstance(answer.result(), SeatsTaken):
            outcome.refused += 1
        else:
            outcome.won += 1
            if self._rate:
                outcome.won_waits_us.append(wait_us)
        if self._rate:
            outcome.waits_us.append(wait_us)
        self.flying -= 1
        self._room.set()

    async def _until(self, fewer_than: int) -> None:
        while self.flying >= fewer_than:
            self._room.clear()
            await self._room.wait()


async def phases(office: Office, servers: dict[str, list[int]], count: int) -> dict[str, Any]:
    """CPU of each way an attempt can end, from attempts that all end that way."""
    passes = office.passes(count)
    ids = office.plan.seat_ids
    fresh: list[Ask] = [(one, (ids[number],)) for number, one in enumerate(passes)]
    report: dict[str, Any] = {}

    async def phase(name: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        tidy()
        with Meter(servers) as meter:
            outcome = await work()
        report[name] = {
            "attempts": count,
            "per_s": round(count / meter.wall_s),
            "cpu_us": meter.per_us(count),
            "ended": [outcome.won, outcome.refused_locally, outcome.refused, outcome.failed],
        }

    await phase("won", lambda: Crowd(office, fresh).storm())
    others: list[Ask] = [
        (ShopPass(one.event_id, f"other{one.fan}", one.expires_at_us, one.id), seats) for one, seats in fresh
    ]
    office.forget()
    await phase("refused by claims", lambda: Crowd(office, others).storm())
    now_us = office.clock()
    office.sale.seats.mark_claimed(
        [TakenSeat(seat, ClaimKind.SOLD, "x", "x", 0, 0) for seat in range(count)], now_us + 3600 * 1_000_000
    )
    await phase("refused locally", lambda: Crowd(office, others).storm())
    return report


def percentiles(waits_us: Sequence[int]) -> dict[str, float]:
    """p50, p99, p99.9 in milliseconds."""
    ordered = sorted(waits_us) or [0]
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000, 2)
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }
