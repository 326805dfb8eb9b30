"""Fans who buy through the published port, as from outside, while something happens to the containers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from frontrow.app.ledger_tools import verify_ledger
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.clock import SystemClock
from tests.app.several_servers import buy
from tests.boxoffice.plan_samples import small_plan
from tests.support.eventually import eventually
from tests.web.api.script import read_document
from tests.web.api.support import put_into

WITHIN_S = 100
NEW_EVENT = b"urn:frontrow:room_unknown"  # each process learns of a new event within some seconds
ASK_AGAIN = (429, 502, 503, 504)  # nginx counts per address, and all these fans have one


def is_an_answer(response: httpx.Response) -> bool:
    """Neither "later" nor a server that has not yet seen the event."""
    return response.status_code not in ASK_AGAIN and NEW_EVENT not in response.content


class Patient(httpx.AsyncBaseTransport):
    """Asks again when nginx or a server says "later", or when the connection breaks; every POST has a key."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=60))
        self.broken = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await eventually(
            lambda: self._ask(request), WITHIN_S, until=is_an_answer, ignoring=httpx.TransportError, every_s=0.25
        )

    async def _ask(self, request: httpx.Request) -> httpx.Response:
        try:
            response = await self._inner.handle_async_request(request)
            await response.aread()
        except httpx.TransportError:
            self.broken += 1
            raise
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class Sale:
    """One event, sold in scenes. `bought` is everything that a fan was told to be confirmed."""

    def __init__(self, url: str, ledger_url: str) -> None:
        self.url, self.ledger_url = url, ledger_url
        self.bought: list[dict[str, Any]] = []
        self._fans = 0

    async def open(self) -> None:
        """Put an event into the ledger and wait until the servers sell it."""
        ledger = await open_ledger(self.ledger_url)
        try:
            await put_into(ledger, SystemClock()(), small_plan(rows=12), hold_ttl_s=300)
        finally:
            await ledger.aclose()
        async with httpx.AsyncClient(transport=Patient(), base_url=self.url, timeout=60) as client:
            self.document = await read_document(client)
            await eventually(
                lambda: client.get("/v1/events"),
                WITHIN_S,
                until=lambda answer: answer.json()["events"],
                every_s=0.25,
            )

    async def while_fans_buy(self, fans: int, happening: Callable[[], Awaitable[None]]) -> None:
        """The first fans have begun when it happens, and others come meanwhile. Every fan must get a ticket."""
        patient = Patient()
        try:
            first = [self._fan(patient) for _ in range(fans // 2)]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            under_way = asyncio.ensure_future(happening())
            second = [self._fan(patient) for _ in range(fans - len(first))]
            await under_way
            self.bought += await asyncio.gather(*first, *second)
        finally:
            await patient.aclose()

    def _fan(self, patient: Patient) -> "asyncio.Task[dict[str, Any]]":
        self._fans += 1
        return asyncio.create_task(buy(self._fans, patient, [self.url], self.document))

    async def check(self) -> str:
        """Everybody has a ticket, no seat has two, and the ledger proves whole."""
        assert {one["state"] for one in self.bought} == {"confirmed"}, self.bought
        seats = [ticket["seat"] for one in self.bought for ticket in one["tickets"]]
        assert len(seats) == len(set(seats)) == len(self.bought) == self._fans, "a seat twice, or a fan without one"
        problems, _ = await verify_ledger(self.ledger_url)
        assert problems == [], problems
        return f"{len(seats)} fans have {len(set(seats))} different seats; the ledger is whole"
