"""The limiter as a plain ASGI class: one limiter call a request, fields on every answer, 429 as problem+json.

    app = RateLimitMiddleware(app, rules="100/minute")
    app = RateLimitMiddleware(app, rules=[RequestRule("holds", Quota.parse("10/minute"), paths=("/holds",))],
                              store="redis://127.0.0.1:6379/0", trusted_proxies=["10.0.0.0/8"])

The path is what the server routes on (`scope["path"]`); Host and forwarded-path fields play no part. WebSocket
handshakes count as GET.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from frontrow.limits.config import load_config
from frontrow.limits.http.caller_identity import make_getters, secret_key, user_name
from frontrow.limits.http.client import ClientAddress
from frontrow.limits.http.headers import Field
from frontrow.limits.http.refusal_responses import missing_answer, refused_answer
from frontrow.limits.http.request_limits import Gate, Getter, MissingClient
from frontrow.limits.http.rule_conversion import TIER_PART, Rules
from frontrow.limits.quota import Decision

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class RateLimitMiddleware:
    """Stands in front of an ASGI application."""

    def __init__(
        self,
        app: App,
        rules: Rules,
        store: str = "memory://",
        *,
        identify: Mapping[str, str | Getter] | None = None,
        trusted_proxies: Iterable[str] = (),
        ipv6_prefix: int = 64,
        **options: Any,
    ) -> None:
        self.app = app
        clients = ClientAddress(trusted_proxies, ipv6_prefix=ipv6_prefix)
        standard: dict[str, Getter] = {"ip": _address(clients), "user": _user, "api_key": _api_key}
        self.gate = Gate(rules, make_getters(standard, identify or {}, header), store=store, **options)

    @classmethod
    def from_config(cls, app: App, path: str | Path | None = None, **options: Any) -> "RateLimitMiddleware":
        """By a TOML file and the environment; `middleware.gate.book.reload()` reads them again."""
        return cls(app, **load_config(path).middleware_options(), **options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            method = scope["method"]
        elif kind == "websocket":
            method = "GET"
        else:
            return await self.app(scope, receive, send)
        gate, path, root_path = self.gate, scope["path"], scope.get("root_path", "")
        route = gate.routes.get((method, path, root_path)) or gate.route(method, path, root_path)
        if not route.matches:
            return await self.app(scope, receive, send)
        try:
            key = route.key_of(scope)
        except MissingClient as error:
            return await _answer(scope, receive, send, *missing_answer(error))
        decision: Decision
        if gate.in_memory and next(gate.turns):  # most decisions in memory take less time than timing them
            decision = route.check(key, route.cost)
        else:
            began_ns = perf_counter_ns()
            decision = route.check(key, route.cost) if gate.in_memory else await route.acheck(key, route.cost)
            gate.took(decision, perf_counter_ns() - began_ns)
        told = route.fields if route.tier_fields is None else route.tier_fields.get(key.get(TIER_PART), route.fields)
        fields = told.of(decision)
        if not decision[0]:
            gate.refused(decision, key, method)
            return await _answer(scope, receive, send, *refused_answer(decision, fields))
        if decision[6]:
            await asyncio.sleep(decision.delay_s)

        # a plain function that hands on the awaitable: one coroutine less for every message
        def send_with_fields(message: Message) -> Awaitable[None]:
            kind = message["type"]
            if kind == "http.response.start" or kind == "websocket.accept":
                message = {**message, "headers": [*message.get("headers", ()), *fields]}
            return send(message)

        return await self.app(scope, receive, send_with_fields)

    def close(self) -> None:
        """Close the store's blocking connections."""
        self.gate.close()

    async def aclose(self) -> None:
        """Close the store's connections."""
        await self.gate.aclose()


async def _answer(scope: Scope, receive: Receive, send: Send, status: int, fields: list[Field], body: bytes) -> None:
    """Send a whole answer in place of the application's."""
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await receive()  # the handshake; closing it unaccepted is the only refusal this server can send
            return await send({"type": "websocket.close", "code": 1013, "reason": "Too many requests"})
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": status, "headers": fields})
    await send({"type": f"{kind}.body", "body": b"" if scope.get("method") == "HEAD" else body})


def header(name: str) -> Getter:
    """Reads one request header. Sent twice with different values it says nothing: which one counts is ambiguous."""
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
