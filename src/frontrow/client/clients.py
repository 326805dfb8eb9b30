"""The two clients: the same calls and journeys over httpx, blocking and asynchronous."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Self, TypeVar

import httpx

from frontrow.client import calls
from frontrow.client import responses as shapes
from frontrow.client.call_engine import Call, Keyring, Pause, Policy, SendRequest, Steps
from frontrow.client.journeys import Journeys

T = TypeVar("T")
MOST_WAIT_S = 3 * 3600.0


def _options(address: str, policy: Policy) -> dict[str, Any]:
    limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=100)
    return {"base_url": address, "timeout": httpx.Timeout(policy.timeout_s, connect=5.0), "limits": limits}


class Client:
    """`with Client("https://tickets.example.org") as shop:`. `token` is a session or an API key."""

    def __init__(
        self, address: str, token: str = "", *, policy: Policy | None = None, http: httpx.Client | None = None
    ) -> None:
        self.policy = policy or Policy()
        self.keyring = Keyring(token)
        self._journeys = Journeys(self.keyring, self.policy)
        self._http = http or httpx.Client(**_options(address, self.policy))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send any call of `frontrow.client.calls` or `staff_calls`."""
        return self._drive(self._journeys.call(call))

    def enter(
        self,
        event: str,
        *,
        proof: str | None = None,
        code: str | None = None,
        most_wait_s: float = MOST_WAIT_S,
        most_pause_s: float = 60.0,
    ) -> shapes.Pass:
        """Pass through the waiting room. The client keeps the pass and sends it with later calls."""
        return self._drive(self._journeys.enter(event, proof, code, most_wait_s, most_pause_s))

    def hold(self, event: str, seats: Sequence[str], *, key: str = "") -> shapes.Hold:
        return self._drive(self._journeys.hold(calls.hold_seats(event, seats, key=key)))

    def hold_best(self, event: str, count: int, *, key: str = "", **wish: Any) -> shapes.Hold:
        return self._drive(self._journeys.hold(calls.hold_best(event, count, key=key, **wish)))

    def pay(
        self, booking: str, method: str = "", *, email: str | None = None, name: str | None = None
    ) -> shapes.Booking:
        return self.send(calls.pay(booking, method, email=email, name=name))

    def tickets(self, booking: str) -> list[shapes.Ticket]:
        return self.send(calls.list_tickets(booking)).tickets

    def claim_offer(self, offer: str, event: str = "") -> shapes.ClaimedOffer:
        return self._drive(self._journeys.claim_offer(offer, event))

    def _drive(self, steps: Steps[T]) -> T:
        result: Any = None
        while True:  # the steps are bounded
            try:
                step = steps.send(result)
            except StopIteration as end:
                value: T = end.value
                return value
            result = self._do_step(step)

    def _do_step(self, step: SendRequest | Pause) -> Any:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.request(
                step.method, step.path, headers=step.headers, content=step.content, params=dict(step.query) or None
            )
        except httpx.TransportError as error:
            return error


class AsyncClient:
    """`async with AsyncClient("https://tickets.example.org") as shop:`. The same calls, awaited."""

    def __init__(
        self, address: str, token: str = "", *, policy: Policy | None = None, http: httpx.AsyncClient | None = None
    ) -> None:
        self.policy = policy or Policy()
        self.keyring = Keyring(token)
        self._journeys = Journeys(self.keyring, self.policy)
        self._http = http or httpx.AsyncClient(**_options(address, self.policy))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *what: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send any call of `frontrow.client.calls` or `staff_calls`."""
        return await self._drive(self._journeys.call(call))

    async def enter(
        self,
        event: str,
        *,
        proof: str | None = None,
        code: str | None = None,
        most_wait_s: float = MOST_WAIT_S,
        most_pause_s: float = 60.0,
    ) -> shapes.Pass:
        """Pass through the waiting room. The client keeps the pass and sends it with later calls."""
        return await self._drive(self._journeys.enter(event, proof, code, most_wait_s, most_pause_s))

    async def hold(self, event: str, seats: Sequence[str], *, key: str = "") -> shapes.Hold:
        return await self._drive(self._journeys.hold(calls.hold_seats(event, seats, key=key)))

    async def hold_best(self, event: str, count: int, *, key: str = "", **wish: Any) -> shapes.Hold:
        return await self._drive(self._journeys.hold(calls.hold_best(event, count, key=key, **wish)))

    async def pay(
        self, booking: str, method: str = "", *, email: str | None = None, name: str | None = None
    ) -> shapes.Booking:
        return await self.send(calls.pay(booking, method, email=email, name=name))

    async def tickets(self, booking: str) -> list[shapes.Ticket]:
        return (await self.send(calls.list_tickets(booking))).tickets

    async def claim_offer(self, offer: str, event: str = "") -> shapes.ClaimedOffer:
        return await self._drive(self._journeys.claim_offer(offer, event))

    async def _drive(self, steps: Steps[T]) -> T:
        result: Any = None
        while True:  # the steps are bounded
            try:
                step = steps.send(result)
            except StopIteration as end:
                value: T = end.value
                return value
            result = await self._do_step(step)

    async def _do_step(self, step: SendRequest | Pause) -> Any:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.request(
                step.method, step.path, headers=step.headers, content=step.content, params=dict(step.query) or None
            )
        except httpx.TransportError as error:
            return error
