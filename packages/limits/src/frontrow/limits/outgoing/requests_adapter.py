"""requests sessions whose requests wait for their turn.

session = requests.Session()
session.mount("https://api.example.com", PacedAdapter("10/second"))
session.mount("https://api.example.com", AdaptiveAdapter())  # as many at once as it answers without a queue
"""

from collections.abc import Callable, Mapping
from typing import Any, Unpack
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from frontrow.limits.adaptive.limit import DROPS
from frontrow.limits.keys import Key
from frontrow.limits.outgoing.adaptive_sending import AdaptiveSender, SenderOptions
from frontrow.limits.outgoing.pacing import Exchange, Limits, Pacer, PacerOptions


class PacedAdapter(BaseAdapter):
    """Sends over `adapter` (default: requests' own), each request in its turn. Counts by host, or by `key`."""

    def __init__(
        self,
        limits: Limits,
        *,
        adapter: BaseAdapter | None = None,
        key: Callable[[requests.PreparedRequest], Key] | None = None,
        **options: Unpack[PacerOptions],
    ) -> None:
        super().__init__()
        self.pacer = Pacer(limits, **options)
        self._inner = adapter or HTTPAdapter()
        self._key = key or _host

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        headers: Callable[[requests.Response], Mapping[str, str]] = lambda response: response.headers  # noqa: E731
        exchange: Exchange[requests.Response] = Exchange(
            self._key(request),
            send=lambda: self._inner.send(request, *args, **options),
            status=lambda response: response.status_code,
            headers=headers,
            can_repeat=lambda: request.body is None or isinstance(request.body, bytes | str),  # a stream is read once
            discard=requests.Response.close,
        )
        return self.pacer.send(exchange)

    def close(self) -> None:
        self.pacer.limiter.close()
        self._inner.close()


class AdaptiveAdapter(BaseAdapter):
    """Sends over `adapter` as many at once as each host answers without a queue. `Shed` beyond that."""

    def __init__(
        self,
        *,
        adapter: BaseAdapter | None = None,
        key: Callable[[requests.PreparedRequest], str] | None = None,
        **options: Unpack[SenderOptions],
    ) -> None:
        super().__init__()
        options.setdefault("drops", (*DROPS, requests.ConnectionError, requests.Timeout))
        self.sender = AdaptiveSender(**options)
        self._inner = adapter or HTTPAdapter()
        self._key = key or _host

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        send = lambda: self._inner.send(request, *args, **options)  # noqa: E731
        return self.sender.send(self._key(request), send, lambda response: response.status_code)

    def close(self) -> None:
        self._inner.close()


def _host(request: requests.PreparedRequest) -> str:
    return urlsplit(request.url or "").netloc
