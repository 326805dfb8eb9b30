"""A crowd of simulated fans against a running platform. Each joins, waits, claims, holds and pays; some change their
mind. How long each waited in the waiting room is counted too.

Every fan has its own connection and address. The crowd counts what they did and how long each step took. It uses only
the server's API.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from frontrow.rehearsal.fan_calls import FanCalls, FanRequest, Send
from frontrow.rehearsal.http_client import FanConnection, Reply, Target

KEPT_TIMES = 200_000
POLL_S = 0.25
LOOK_S = 0.5  # how often a fan who waits looks
MAX_POLLS = 2_400
WAIT = "wait"  # from joining to one's turn, of those who had to wait
MAX_TRIES = 20
SHARE_DECLINED, SHARE_BANK, SHARE_LEAVING, SHARE_REFUNDING = 0.03, 0.05, 0.04, 0.01


class FanFailed(Exception):
    """A response that no fan should get."""


@dataclass(slots=True)
class CrowdStats:
    """What the crowd has seen so far."""

    counts: Counter[str] = field(default_factory=Counter)  # "waiting" and "inside" are how many are so now
    took_ms: dict[str, list[float]] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    sold_out: bool = False

    def record_time(self, step: str, seconds: float) -> None:
        times = self.took_ms.setdefault(step, [])
        if len(times) < KEPT_TIMES:
            times.append(seconds * 1000)

    def percentile(self, step: str, share: float) -> float:
        times = sorted(self.took_ms.get(step, [0.0]))
        return times[min(len(times) - 1, int(share * len(times)))]


class Crowd:
    """`people` fans at a time, each followed by a new one, until `stop` or until the event is sold out."""

    def __init__(self, url: str, event_id: str, people: int, *, seed: int = 2026) -> None:
        self._target, self._event_id = Target.from_url(url), event_id
        self._people = people
        self._random = random.Random(seed)
        self._number = 0
        self._stopping = asyncio.Event()
        self.tally = CrowdStats()

    async def run(self) -> None:
        """Run until `stop`, or until nothing is left to buy."""
        await asyncio.gather(*(self._send_fans() for _ in range(self._people)))

    def stop(self) -> None:
        self._stopping.set()

    async def _send_fans(self) -> None:
        while not self._stopping.is_set() and not self.tally.sold_out:
            self._number += 1
            number = self._number
            address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            connection = FanConnection(self._target, address)
            try:
                await self._one_fan(
                    FanCalls(self._event_id, self._sender(connection)), random.Random(self._random.random())
                )
            except (FanFailed, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                if self._stopping.is_set():
                    return
                self.tally.counts["odd"] += 1
                self.tally.odd = [*self.tally.odd[-9:], f"{type(error).__name__}: {error}"[:200]]
                await asyncio.sleep(POLL_S)
            finally:
                await connection.aclose()

    def _sender(self, connection: FanConnection) -> Send:
        """Sends a fan's requests and times them. Waits as long as a refusal asks for, then sends again."""

        async def send(request: FanRequest) -> Reply:
            for _ in range(MAX_TRIES):
                began_s = time.perf_counter()
                reply = await connection.send(request.method, request.path, request.body, **request.headers)
                self.tally.record_time(request.step, time.perf_counter() - began_s)
                self.tally.counts["requests"] += 1
                if reply.status not in (429, 503) or not reply.retry_after_s or self._stopping.is_set():
                    break
                self.tally.counts["asked to wait"] += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), reply.retry_after_s)
            return reply

        return send

    async def _one_fan(self, calls: FanCalls, rng: random.Random) -> None:
        if not await self._enter(calls):
            return
        self.tally.counts["inside"] += 1
        try:
            await self._shop(calls, rng)
        finally:
            self.tally.counts["inside"] -= 1
            await calls.leave_shop()

    async def _shop(self, calls: FanCalls, rng: random.Random) -> None:
        held = await _expect("hold", calls.hold_best(rng.choice((1, 2, 2, 2, 3, 4)), apart_ok=True), 201, 409)
        if held.status == 409:
            await self._try_single_seats(calls)
            return
        self.tally.counts["held"] += 1
        if rng.random() < SHARE_LEAVING:
            await _expect("release", calls.release(), 200)
            self.tally.counts["changed their mind"] += 1
        else:
            await self._pay(calls, rng, held.json())

    async def _enter(self, calls: FanCalls) -> bool:
        joined = await _expect("join", calls.join(), 201)
        self.tally.counts["joined"] += 1
        state, began_s = joined.json()["state"], time.perf_counter()
        if state == "active" and await self._claim(calls):
            return True
        self.tally.counts["waiting"] += 1
        try:
            for _ in range(MAX_POLLS):
                if self._stopping.is_set() or self.tally.sold_out:
                    return False
                await asyncio.sleep(LOOK_S)
                state = (await _expect("status", calls.read_status(), 200)).json()["state"]
                if state == "active" and await self._claim(calls):
                    self.tally.record_time(WAIT, time.perf_counter() - began_s)
                    return True
        finally:
            self.tally.counts["waiting"] -= 1
        raise FanFailed("waited too long")

    async def _claim(self, calls: FanCalls) -> bool:
        """Whether there was room in the shop."""
        claimed = await _expect("claim", calls.claim(), 201, 409, 503)
        self.tally.counts["admitted"] += claimed.status == 201
        return claimed.status == 201

    async def _try_single_seats(self, calls: FanCalls) -> None:
        """Nothing fits the wish: try single seats, seated and standing. If there are none, the event is sold out."""
        for standing in (False, True):
            answer = await calls.hold_best(1, step_free=False, standing=standing)
            if answer.status != 409:
                return
        self.tally.sold_out = True

    async def _pay(self, calls: FanCalls, rng: random.Random, booking: dict[str, Any]) -> None:
        luck = rng.random()
        method = "pm_card_visa"
        if luck < SHARE_DECLINED:
            method = "pm_card_declined"
        elif luck < SHARE_DECLINED + SHARE_BANK:
            method = "pm_card_3ds"
        paid = await _expect("pay", calls.pay(method), 200, 202, 402)
        if paid.status == 402:
            self.tally.counts["declined"] += 1
            if paid.json().get("tries_left"):  # has no other card
                await _expect("release", calls.release(), 200, 410)
            return
        if paid.json()["checkout"]["state"] == "action":
            paid = await _expect("bank", calls.confirm_at_bank(), 200)
        if paid.json()["state"] == "confirmed":
            self.tally.counts["sold"] += len(booking["seats"])
            self.tally.counts["bookings"] += 1
        if rng.random() < SHARE_REFUNDING:
            await _expect("refund", calls.ask_refund(), 201)
            self.tally.counts["given back"] += len(booking["seats"])


async def _expect(step: str, request: Awaitable[Reply], *expected: int) -> Reply:
    reply = await request
    if reply.status not in expected:
        raise FanFailed(f"{step}: {reply.status} {reply.body[:120].decode(errors='replace')}")
    return reply
