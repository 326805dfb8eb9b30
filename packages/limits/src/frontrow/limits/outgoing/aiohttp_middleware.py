"""aiohttp clients whose requests wait for their turn.

session = aiohttp.ClientSession(middlewares=(PacedRequests("10/second"),))
session = aiohttp.ClientSession(middlewares=(AdaptiveRequests(),))  # as many at once as it answers without a queue
"""

from collections.abc import Callable
from typing import Unpack

from aiohttp import ClientConnectionError, ClientHandlerType, ClientRequest, ClientResponse

from frontrow.limits.adaptive.limit import DROPS
from frontrow.limits.keys import Key
from frontrow.limits.outgoing.adaptive_sending import AdaptiveSender, SenderOptions
from frontrow.limits.outgoing.pacing import Exchange, Limits, Pacer, PacerOptions


class PacedRequests:
    """A client middleware of aiohttp (3.12 or newer). Counts by host, or by `key`.

    The session does not close it. With a Redis store, call `await middleware.aclose()` at the end.
    """

    def __init__(
        self, limits: Limits, *, key: Callable[[ClientRequest], Key] | None = None, **options: Unpack[PacerOptions]
    ) -> None:
        self.pacer = Pacer(limits, **options)
        self._key = key or _host

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        exchange: Exchange[ClientResponse] = Exchange(
            self._key(request),
            send=lambda: handler(request),
            status=lambda response: response.status,
            headers=lambda response: response.headers,
            can_repeat=lambda: not getattr(request.body, "consumed", False),
            discard=lambda response: response.release(),
        )
        return await self.pacer.asend(exchange)

    async def aclose(self) -> None:
        """Close the limiter's connections."""
        await self.pacer.limiter.aclose()


class AdaptiveRequests:
    """A client middleware of aiohttp: as many at once as each host answers without a queue. `Shed` beyond that."""

    def __init__(self, *, key: Callable[[ClientRequest], str] | None = None, **options: Unpack[SenderOptions]) -> None:
        options.setdefault("drops", (*DROPS, ClientConnectionError))
        self.sender = AdaptiveSender(**options)
        self._key = key or _host

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        return await self.sender.asend(self._key(request), lambda: handler(request), lambda response: response.status)


def _host(request: ClientRequest) -> str:
    return request.url.authority
