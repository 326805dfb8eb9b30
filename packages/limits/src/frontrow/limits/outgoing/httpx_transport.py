"""httpx clients whose requests wait for their turn.

client = httpx.Client(transport=PacedTransport("10/second"))
client = httpx.AsyncClient(transport=AsyncPacedTransport("10/second"))
client = httpx.AsyncClient(transport=AsyncAdaptiveTransport())

The adaptive ones send as many at once to each host as it answers without a queue.
"""

from collections.abc import Callable
from typing import Any, Unpack

import httpx

from frontrow.limits.adaptive.limit import DROPS
from frontrow.limits.keys import Key
from frontrow.limits.outgoing.adaptive_sending import AdaptiveSender, SenderOptions
from frontrow.limits.outgoing.pacing import Exchange, Limits, Pacer, PacerOptions


class PacedTransport(httpx.BaseTransport):
    """Sends over `transport` (default: httpx's own), each request in its turn. Counts by host, or by `key`."""

    def __init__(
        self,
        limits: Limits,
        *,
        transport: httpx.BaseTransport | None = None,
        key: Callable[[httpx.Request], Key] | None = None,
        **options: Unpack[PacerOptions],
    ) -> None:
        self.pacer = Pacer(limits, **options)
        self._inner = transport or httpx.HTTPTransport()
        self._key = key or _host

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        send = lambda: self._inner.handle_request(request)  # noqa: E731
        return self.pacer.send(_exchange(request, self._key(request), send, httpx.Response.close))

    def close(self) -> None:
        self.pacer.limiter.close()
        self._inner.close()


class AsyncPacedTransport(httpx.AsyncBaseTransport):
    """`PacedTransport` for `httpx.AsyncClient`."""

    def __init__(
        self,
        limits: Limits,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        key: Callable[[httpx.Request], Key] | None = None,
        **options: Unpack[PacerOptions],
    ) -> None:
        self.pacer = Pacer(limits, **options)
        self._inner = transport or httpx.AsyncHTTPTransport()
        self._key = key or _host

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        send = lambda: self._inner.handle_async_request(request)  # noqa: E731
        return await self.pacer.asend(_exchange(request, self._key(request), send, httpx.Response.aclose))

    async def aclose(self) -> None:
        await self.pacer.limiter.aclose()
        await self._inner.aclose()


class AdaptiveTransport(httpx.BaseTransport):
    """Sends over `transport` as many at once as each host answers without a queue. `Shed` beyond that."""

    def __init__(
        self,
        *,
        transport: httpx.BaseTransport | None = None,
        key: Callable[[httpx.Request], str] | None = None,
        **options: Unpack[SenderOptions],
    ) -> None:
        options.setdefault("drops", (*DROPS, httpx.TransportError))
        self.sender = AdaptiveSender(**options)
        self._inner = transport or httpx.HTTPTransport()
        self._key = key or _host

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.sender.send(self._key(request), lambda: self._inner.handle_request(request), _status)

    def close(self) -> None:
        self._inner.close()


class AsyncAdaptiveTransport(httpx.AsyncBaseTransport):
    """`AdaptiveTransport` for `httpx.AsyncClient`."""

    def __init__(
        self,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        key: Callable[[httpx.Request], str] | None = None,
        **options: Unpack[SenderOptions],
    ) -> None:
        options.setdefault("drops", (*DROPS, httpx.TransportError))
        self.sender = AdaptiveSender(**options)
        self._inner = transport or httpx.AsyncHTTPTransport()
        self._key = key or _host

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        send = lambda: self._inner.handle_async_request(request)  # noqa: E731
        return await self.sender.asend(self._key(request), send, _status)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _status(response: httpx.Response) -> int:
    return response.status_code


def _exchange(
    request: httpx.Request, key: Key, send: Callable[[], Any], discard: Callable[[httpx.Response], Any]
) -> Exchange[httpx.Response]:
    return Exchange(
        key,
        send=send,
        status=lambda response: response.status_code,
        headers=lambda response: response.headers,
        can_repeat=lambda: isinstance(request.stream, httpx.ByteStream),  # anything else was read and is gone
        discard=discard,
    )


def _host(request: httpx.Request) -> str:
    return request.url.netloc.decode("ascii", "replace")
