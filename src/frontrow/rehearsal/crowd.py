"""A crowd of simulated fans against a running platform: each joins, waits, claims, holds, pays; some change their mind.

Every fan has a connection and an address of its own. What they did and how long each step took is counted; nothing is
assumed about the server but its API.
"""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from frontrow.rehearsal.http_client import Reply, Wire

KEPT_TIMES = 200_000
POLL_S = 0.25
MAX_POLLS = 2_400
SHARE_DECLINED, SHARE_BANK, SHARE_LEAVING, SHARE_REFUNDING = 0.03, 0.05, 0.04, 0.01


class FanFailed(Exception):
    """An answer no fan should get."""


@dataclass(slots=True)
class Tally:
    """What the crowd has seen so far."""

    counts: Counter[str] = field(default_factory=Counter)
    took_ms: dict[str, list[float]] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    sold_out: bool = False

    def took(self, step: str, seconds: float) -> None:
        times = self.took_ms.setdefault(step, [])
        if len(times) < KEPT_TIMES:
            times.append(seconds * 1000)

    def percentile(self, step: str, share: float) -> float:
        times = sorted(self.took_ms.get(step, [0.0]))
        return times[min(len(times) - 1, int(share * len(times)))]


class Crowd:
    """`people` fans at a time, each followed by a new one, until told to stop or the event is sold out."""

    def __init__(self, url: str, event_id: str, people: int, *, seed: int = 2026) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._base = f"/v1/events/{event_id}"
        self._people = people
        self._random = random.Random(seed)
        self._number = 0
        self._stopping = asyncio.Event()
        self.tally = Tally()

    async def run(self) -> None:
        """Until `stop`, or until nothing is left to buy."""
        await asyncio.gather(*(self._line_of_fans() for _ in range(self._people)))

    def stop(self) -> None:
        self._stopping.set()

    async def _line_of_fans(self) -> None:
        while not self._stopping.is_set() and not self.tally.sold_out:
            self._number += 1
            number = self._number
            address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            wire = Wire(self._host, self._port, address)
            try:
                await self._one_fan(wire, random.Random(self._random.random()))
            except (FanFailed, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                if self._stopping.is_set():
                    return
                self.tally.counts["odd"] += 1
                self.tally.odd = [*self.tally.odd[-9:], f"{type(error).__name__}: {error}"[:200]]
                await asyncio.sleep(POLL_S)
            finally:
                await wire.aclose()

    async def _one_fan(self, wire: Wire, rng: random.Random) -> None:
        shop_pass = await self._enter(wire)
        if not shop_pass:
            return
        headers = {"Frontrow_Pass": shop_pass}
        try:
            await self._shop(wire, rng, headers)
        finally:  # as the pages do: the visit of a buyer ends by itself, and a closed page says so
            await wire.ask("POST", f"{self._base}/room/left", **{"Frontrow_Pass": shop_pass})

    async def _shop(self, wire: Wire, rng: random.Random, headers: dict[str, str]) -> None:
        wish = {"best": {"count": rng.choice((1, 2, 2, 2, 3, 4)), "restricted_view_ok": True, "apart_ok": True}}
        held = await self._step("hold", wire.ask("POST", f"{self._base}/holds", wish, **headers), 201, 409)
        if held.status == 409:
            await self._nothing_fits(wire, headers)
            return
        self.tally.counts["held"] += 1
        booking = held.json()
        headers["Frontrow_Booking"] = booking["booking_token"]
        if rng.random() < SHARE_LEAVING:
            await self._step("release", wire.ask("DELETE", f"/v1/bookings/{booking['booking']}/hold", **headers), 200)
            self.tally.counts["changed their mind"] += 1
        else:
            await self._pay(wire, rng, booking, headers)

    async def _enter(self, wire: Wire) -> str:
        joined = await self._step("join", wire.ask("POST", f"{self._base}/room/join"), 201)
        self.tally.counts["joined"] += 1
        place = {"Authorization": f"Bearer {joined.json()['place']}"}
        state = joined.json()["state"]
        for _ in range(MAX_POLLS):
            if state == "active":
                asking = wire.ask("POST", f"{self._base}/room/claim", **place)
                claimed = await self._step("claim", asking, 201, 409, 503)
                if claimed.status == 201:
                    self.tally.counts["admitted"] += 1
                    return str(claimed.json()["pass"])
            if self._stopping.is_set() or self.tally.sold_out:
                return ""
            await asyncio.sleep(POLL_S)
            told = await self._step("status", wire.ask("GET", f"{self._base}/room/status", **place), 200)
            state = told.json()["state"]
        raise FanFailed("waited too long")

    async def _nothing_fits(self, wire: Wire, headers: dict[str, str]) -> None:
        """Perhaps one seat is left somewhere, standing or sitting."""
        for standing in (False, True):
            wish = {"best": {"count": 1, "restricted_view_ok": True, "step_free": False, "standing": standing}}
            answer = await wire.ask("POST", f"{self._base}/holds", wish, **headers)
            if answer.status != 409:
                return
        self.tally.sold_out = True

    async def _pay(self, wire: Wire, rng: random.Random, booking: dict[str, Any], headers: dict[str, str]) -> None:
        path = f"/v1/bookings/{booking['booking']}"
        luck = rng.random()
        method = "pm_card_visa"
        if luck < SHARE_DECLINED:
            method = "pm_card_declined"
        elif luck < SHARE_DECLINED + SHARE_BANK:
            method = "pm_card_3ds"
        paid = await self._step("pay", wire.ask("POST", f"{path}/pay", {"method": method}, **headers), 200, 202, 402)
        if paid.status == 402:
            self.tally.counts["declined"] += 1
            return
        if paid.json()["checkout"]["state"] == "action":
            paid = await self._step("bank", wire.ask("POST", f"{path}/simulated-bank", **headers), 200)
        if paid.json()["state"] == "confirmed":
            self.tally.counts["sold"] += len(booking["seats"])
            self.tally.counts["bookings"] += 1
        if rng.random() < SHARE_REFUNDING:
            await self._step("refund", wire.ask("POST", f"{path}/refunds", {}, **headers), 201)
            self.tally.counts["given back"] += len(booking["seats"])

    async def _step(self, name: str, asking: Any, *fine: int) -> Reply:
        began_s = time.perf_counter()
        reply: Reply = await asking
        self.tally.took(name, time.perf_counter() - began_s)
        self.tally.counts["requests"] += 1
        if reply.status not in fine:
            raise FanFailed(f"{name}: {reply.status} {reply.body[:120].decode(errors='replace')}")
        return reply
