"""A crowd of simulated fans against a running platform. Each joins, waits, claims, holds and pays; some change their
mind.

Every fan has its own connection and address. The crowd counts what they did and how long each step took. It uses only
the server's API.
"""

import asyncio
import contextlib
import functools
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from frontrow.rehearsal.http_client import FanConnection, Reply

KEPT_TIMES = 200_000
POLL_S = 0.25
MAX_POLLS = 2_400
MAX_REFUSALS = 30  # of one step, each with the pause that the server asks for
MAX_PAUSE_S = 60.0
SHARE_DECLINED, SHARE_BANK, SHARE_LEAVING, SHARE_REFUNDING = 0.03, 0.05, 0.04, 0.01


class FanFailed(Exception):
    """A response that no fan should get."""


@dataclass(slots=True)
class CrowdStats:
    """What the crowd has seen so far."""

    counts: Counter[str] = field(default_factory=Counter)
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
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._base = f"/v1/events/{event_id}"
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
            connection = FanConnection(self._host, self._port, address)
            try:
                await self._one_fan(connection, random.Random(self._random.random()))
            except (FanFailed, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                if self._stopping.is_set():
                    return
                self.tally.counts["odd"] += 1
                self.tally.odd = [*self.tally.odd[-9:], f"{type(error).__name__}: {error}"[:200]]
                await asyncio.sleep(POLL_S)
            finally:
                await connection.aclose()

    async def _one_fan(self, connection: FanConnection, rng: random.Random) -> None:
        shop_pass = await self._enter(connection)
        if not shop_pass:
            return
        headers = {"Frontrow_Pass": shop_pass}
        try:
            await self._shop(connection, rng, headers)
        finally:  # as the pages do when they are closed
            await connection.send("POST", f"{self._base}/room/left", **{"Frontrow_Pass": shop_pass})

    async def _shop(self, connection: FanConnection, rng: random.Random, headers: dict[str, str]) -> None:
        wish = {"best": {"count": rng.choice((1, 2, 2, 2, 3, 4)), "restricted_view_ok": True, "apart_ok": True}}
        held = await self._step(
            "hold", lambda: connection.send("POST", f"{self._base}/holds", wish, **headers), 201, 409
        )
        if held.status == 409:
            await self._try_single_seats(connection, headers)
            return
        self.tally.counts["held"] += 1
        booking = held.json()
        headers["Frontrow_Booking"] = booking["booking_token"]
        if rng.random() < SHARE_LEAVING:
            path = f"/v1/bookings/{booking['booking']}/hold"
            await self._step("release", lambda: connection.send("DELETE", path, **headers), 200)
            self.tally.counts["changed their mind"] += 1
        else:
            await self._pay(connection, rng, booking, headers)

    async def _enter(self, connection: FanConnection) -> str:
        joined = await self._step("join", lambda: connection.send("POST", f"{self._base}/room/join"), 201)
        self.tally.counts["joined"] += 1
        place = {"Authorization": f"Bearer {joined.json()['place']}"}
        state = joined.json()["state"]
        for _ in range(MAX_POLLS):
            if state == "active":
                claim = functools.partial(connection.send, "POST", f"{self._base}/room/claim", **place)
                claimed = await self._step("claim", claim, 201, 409)
                if claimed.status == 201:
                    self.tally.counts["admitted"] += 1
                    return str(claimed.json()["pass"])
            if self._stopping.is_set() or self.tally.sold_out:
                return ""
            await asyncio.sleep(POLL_S)
            look = functools.partial(connection.send, "GET", f"{self._base}/room/status", **place)
            state = (await self._step("status", look, 200)).json()["state"]
        raise FanFailed("waited too long")

    async def _try_single_seats(self, connection: FanConnection, headers: dict[str, str]) -> None:
        """Nothing fits the wish: try single seats, seated and standing. If there are none, the event is sold out."""
        for standing in (False, True):
            wish = {"best": {"count": 1, "restricted_view_ok": True, "step_free": False, "standing": standing}}
            path = f"{self._base}/holds"
            ask = functools.partial(connection.send, "POST", path, wish, **headers)
            if (await self._step("hold", ask, 201, 409)).status != 409:
                return
        self.tally.sold_out = True

    async def _pay(
        self, connection: FanConnection, rng: random.Random, booking: dict[str, Any], headers: dict[str, str]
    ) -> None:
        path = f"/v1/bookings/{booking['booking']}"
        luck = rng.random()
        method = "pm_card_visa"
        if luck < SHARE_DECLINED:
            method = "pm_card_declined"
        elif luck < SHARE_DECLINED + SHARE_BANK:
            method = "pm_card_3ds"
        card = {"method": method}
        paid = await self._step("pay", lambda: connection.send("POST", f"{path}/pay", card, **headers), 200, 202, 402)
        if paid.status == 402:
            self.tally.counts["declined"] += 1
            return
        if paid.json()["checkout"]["state"] == "action":
            paid = await self._step("bank", lambda: connection.send("POST", f"{path}/simulated-bank", **headers), 200)
        if paid.json()["state"] == "confirmed":
            self.tally.counts["sold"] += len(booking["seats"])
            self.tally.counts["bookings"] += 1
        if rng.random() < SHARE_REFUNDING:
            await self._step("refund", lambda: connection.send("POST", f"{path}/refunds", {}, **headers), 201)
            self.tally.counts["given back"] += len(booking["seats"])

    async def _step(self, name: str, ask: Callable[[], Awaitable[Reply]], *expected: int) -> Reply:
        """Ask, and ask again as often as the server says when to."""
        for _ in range(MAX_REFUSALS):
            began_s = time.perf_counter()
            reply = await ask()
            self.tally.record_time(name, time.perf_counter() - began_s)
            self.tally.counts["requests"] += 1
            if reply.status in expected:
                return reply
            if reply.status not in (429, 503) or reply.retry_after_s is None or self._stopping.is_set():
                break
            self.tally.counts["asked to wait"] += 1
            await self._pause(reply.retry_after_s)
        raise FanFailed(f"{name}: {reply.status} {reply.body[:120].decode(errors='replace')}")

    async def _pause(self, seconds: float) -> None:
        """Wait as long as the server asked, and up to a fifth longer, so that not all come back at once."""
        most_s = min(seconds, MAX_PAUSE_S) * (1 + self._random.random() / 5)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._stopping.wait()
