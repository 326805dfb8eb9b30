"""What a fan asks a server for, one function per step: from the event's page to the tickets.

The demo's crowd and the storm's fans use the same calls. `send` carries a request out and counts it.
"""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from frontrow.rehearsal.http_client import Reply


@dataclass(frozen=True, slots=True)
class FanRequest:
    """One request. `step` is what it is counted under."""

    step: str
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Send = Callable[[FanRequest], Awaitable[Reply]]


class FanCalls:
    """The calls of one fan at one event. Keeps the place, the pass and the booking's token between them."""

    def __init__(self, event_id: str, send: Send) -> None:
        self._event_id, self._send = event_id, send
        self._base = f"/v1/events/{event_id}"
        self._place: dict[str, str] = {}
        self._visit: dict[str, str] = {}  # the pass, then the booking's token too
        self._booking = ""

    async def open_page(self) -> Reply:
        """The page of the event, as a browser asks for it."""
        return await self._get("page", f"/events/{self._event_id}", {"Accept": "text/html"})

    async def read_event(self) -> Reply:
        return await self._get("event", self._base)

    async def join(self) -> Reply:
        joined = await self._post("join", f"{self._base}/room/join", {})
        if joined.status == 201:
            self._place = {"Authorization": f"Bearer {joined.json()['place']}"}
        return joined

    async def read_status(self) -> Reply:
        """The state of the fan's place."""
        return await self._get("status", f"{self._base}/room/status", self._place)

    async def read_window(self) -> Reply:
        """What the room serves now: the document that waiting pages read again and again."""
        return await self._get("now-serving", f"{self._base}/room/now-serving")

    async def claim(self) -> Reply:
        claimed = await self._post("claim", f"{self._base}/room/claim", self._place)
        if claimed.status == 201:
            self._visit = {"Frontrow_Pass": str(claimed.json()["pass"])}
        return claimed

    async def read_map(self, map_url: str) -> Reply:
        """The drawing of the hall."""
        return await self._get("map", map_url, self._visit)

    async def read_seats(self) -> Reply:
        """The state of every seat."""
        return await self._get("seats", f"{self._base}/seats.bin", self._visit)

    async def hold_best(self, count: int, **wish: Any) -> Reply:
        body = {"best": {"count": count, "restricted_view_ok": True, **wish}}
        held = await self._post("hold", f"{self._base}/holds", self._visit, body)
        if held.status == 201:
            self._visit["Frontrow_Booking"] = held.json()["booking_token"]
            self._booking = f"/v1/bookings/{held.json()['booking']}"
        return held

    async def release(self) -> Reply:
        return await self._send(FanRequest("release", "DELETE", f"{self._booking}/hold", headers=self._visit))

    async def pay(self, method: str) -> Reply:
        return await self._post("pay", f"{self._booking}/pay", self._visit, {"method": method})

    async def confirm_at_bank(self) -> Reply:
        """What the fan does on the page of the simulated bank."""
        return await self._post("bank", f"{self._booking}/simulated-bank", self._visit)

    async def read_booking(self) -> Reply:
        return await self._get("booking", self._booking, self._visit)

    async def read_tickets(self) -> Reply:
        return await self._get("tickets", f"{self._booking}/tickets", self._visit)

    async def ask_refund(self) -> Reply:
        return await self._post("refund", f"{self._booking}/refunds", self._visit, {})

    async def leave_shop(self) -> Reply:
        """As the pages do when they are closed."""
        visit = {"Frontrow_Pass": self._visit["Frontrow_Pass"]}
        return await self._send(FanRequest("left", "POST", f"{self._base}/room/left", headers=visit))

    async def _get(self, step: str, path: str, headers: dict[str, str] | None = None) -> Reply:
        return await self._send(FanRequest(step, "GET", path, headers=headers or {}))

    async def _post(self, step: str, path: str, headers: dict[str, str], body: Any = None) -> Reply:
        keyed = headers | {"Idempotency_Key": uuid.uuid4().hex}
        return await self._send(FanRequest(step, "POST", path, body, keyed))
