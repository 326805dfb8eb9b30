"""The limiter as plain ASGI middleware: one limiter call per request, headers on every response, 429 as problem+json.

    app = RateLimitMiddleware(app, rules="100/minute")
    app = RateLimitMiddleware(app, rules=[RequestRule("holds", Quota.parse("10/minute"), paths=("/holds",))],
                              store="redis://127.0.0.1:6379/0", trusted_proxies=["10.0.0.0/8"])

The path is what the server routes on (`scope["path"]`). Host and forwarded-path headers are ignored. WebSocket
handshakes count as GET.
"""

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from frontrow.limits.config import load_config
from frontrow.limits.http.caller_identity import make_getters, secret_key, user_name
from frontrow.limits.http.client import ClientAddress
from frontrow.limits.http.headers import Field
from frontrow.limits.http.refusal_responses import missing_client_response, refusal_response
from frontrow.limits.http.request_limits import Getter, MissingClient, RequestLimits
from frontrow.limits.http.rule_conversion import TIER_PART, Rules
from frontrow.limits.quota import Decision

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class RateLimitMiddleware:
    """Limits the requests of an ASGI application."""

    def __init__(
        self,
        app: App,
        rules: Rules,
        store: Any = "memory://",
        *,
        identify: Mapping[str, str | Getter] | None = None,
        trusted_proxies: Iterable[str] = (),
        ipv6_prefix: int = 64,
        **options: Any,
    ) -> None:
        self.app = app
        clients = ClientAddress(trusted_proxies, ipv6_prefix=ipv6_prefix)
        standard: dict[str, Getter] = {"ip": _address(clients), "user": _user, "api_key": _api_key}
        self.limits = RequestLimits(rules, make_getters(standard, identify or {}, header), store=store, **options)

    @classmethod
    def from_config(cls, app: App, path: str | Path | None = None, **options: Any) -> "RateLimitMiddleware":
        """Configured by a TOML file and the environment; `middleware.limits.book.reload()` reads them again."""
        return cls(app, **{**load_config(path).middleware_options(), **options})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            method = scope["method"]
        elif kind == "websocket":
            method = "GET"
        else:
            return await self.app(scope, receive, send)
        limits, path, root_path = self.limits, scope["path"], scope.get("root_path", "")
        route = limits.routes.get((method, path, root_path)) or limits.add_route(method, path, root_path)
        if not route.matches:
            return await self.app(scope, receive, send)
        try:
            key = route.key_of(scope)
        except MissingClient as error:
            return await _send_response(scope, receive, send, *missing_client_response(error))
        decision: Decision
        if limits.in_memory and next(limits.untimed):  # most decisions in memory take less time than timing them
            decision = route.check(key, route.cost)
        else:
            began_ns = perf_counter_ns()
            decision = route.check(key, route.cost) if limits.in_memory else await route.acheck(key, route.cost)
            limits.record_latency(decision, perf_counter_ns() - began_ns)
        headers = route.headers
        if route.tier_headers is not None:
            headers = route.tier_headers.get(key.get(TIER_PART), headers)
        fields = headers.of(decision)
        if not decision[0]:
            limits.log_refusal(decision, key, method)
            return await _send_response(scope, receive, send, *refusal_response(decision, fields))
        if decision[6]:
            await asyncio.sleep(decision.delay_s)

        # a plain function that returns the awaitable saves one coroutine per message
        def send_with_fields(message: Message) -> Awaitable[None]:
            kind = message["type"]
            if kind == "http.response.start" or kind == "websocket.accept":
                message = {**message, "headers": [*message.get("headers", ()), *fields]}
            return send(message)

        return await self.app(scope, receive, send_with_fields)

    @property
    def gate(self) -> RequestLimits:
        """The old name of `limits`. It goes away in 0.3."""
        warnings.warn("RateLimitMiddleware.gate is now .limits", DeprecationWarning, stacklevel=2)
        return self.limits

    def close(self) -> None:
        """Close the store's blocking connections."""
        self.limits.close()

    async def aclose(self) -> None:
        """Close the store's connections."""
        await self.limits.aclose()


async def _send_response(
    scope: Scope, receive: Receive, send: Send, status: int, fields: list[Field], body: bytes
) -> None:
    """Send a whole response in place of the application's."""
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await receive()  # the handshake; this server can refuse it only by closing it
            return await send({"type": "websocket.close", "code": 1013, "reason": "Too many requests"})
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": status, "headers": fields})
    await send({"type": f"{kind}.body", "body": b"" if scope.get("method") == "HEAD" else body})


def header(name: str) -> Getter:
    """Reads one request header. A header sent twice with different values is ambiguous and counts as missing."""
    wanted = name.lower().encode("latin-1")

    def get(scope: Scope) -> str | None:
        found = None
        for key, value in scope["headers"]:
            if key == wanted and value != found:
                if found is not None:
                    return None
                found = value
        return found.decode("latin-1").strip() if found else None

    return get


def _address(clients: ClientAddress) -> Getter:
    direct = clients.direct

    def peer_only(scope: Scope) -> str | None:
        client = scope.get("client")
        return direct(client[0]) if client else None

    def behind_proxies(scope: Scope) -> str | None:
        client = scope.get("client")
        peer = client[0] if client else None
        if not clients.is_proxy(peer):
            return direct(peer) if peer else None
        forwarded = [value.decode("latin-1") for key, value in scope["headers"] if key == b"x-forwarded-for"]
        return clients.key(peer, forwarded)

    return peer_only if clients.trusts_nobody else behind_proxies


def _user(scope: Scope) -> str | None:
    return user_name(scope.get("user"))


_key_header = header("x-api-key")


def _api_key(scope: Scope) -> str | None:
    return secret_key(_key_header(scope))
