"""The limiter as plain ASGI middleware: one limiter call per request, headers on every response, 429 as problem+json.

    app = RateLimitMiddleware(app, rules="100/minute")
    app = RateLimitMiddleware(app, rules=[RequestRule("holds", Quota.parse("10/minute"), paths=("/holds",))],
                              store="redis://127.0.0.1:6379/0", trusted_proxies=["10.0.0.0/8"])

The path is what the server routes on (`scope["path"]`). Host and forwarded-path headers are ignored. WebSocket
handshakes count as GET.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Unpack, cast

from frontrow.limits.config import load_config
from frontrow.limits.http.body_parts import BODY, read_asgi_body
from frontrow.limits.http.caller_identity import Getter, RequestSource, arun_steps
from frontrow.limits.http.cors import is_cross_origin, is_preflight, through_cors
from frontrow.limits.http.exempt import serves_exempt
from frontrow.limits.http.headers import FIELDS, Field, tightest
from frontrow.limits.http.open_charges import CHARGES, agive_back, tell_charge
from frontrow.limits.http.refusal_responses import Response, missing_client_response, own_response, refusal_response
from frontrow.limits.http.request_limits import WEBSOCKET, LimitedRoute, MissingClient, Options, RequestLimits
from frontrow.limits.http.rule_conversion import Rules
from frontrow.limits.quota import Decision

# every framework has types of its own for these, and mypy must accept this middleware in all of them
Scope = Any
Message = Any
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class RateLimitMiddleware:
    """Limits the requests of an ASGI application."""

    def __init__(self, app: App, rules: Rules, store: Any = "memory://", **options: Unpack[Options]) -> None:
        self.app = app
        self.limits = RequestLimits(rules, SCOPES, store=store, **options)

    @classmethod
    def from_config(cls, app: App, path: str | Path | None = None, **options: Unpack[Options]) -> "RateLimitMiddleware":
        """Configured by a TOML file and the environment; `middleware.limits.book.reload()` reads them again."""
        return cls(app, **{**load_config(path).middleware_options(), **options})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            method = scope["method"]
        elif kind == "websocket":
            method = WEBSOCKET
        else:
            return await self.app(scope, receive, send)
        limits, path, root_path = self.limits, scope["path"], scope.get("root_path", "")
        route = limits.routes.get((method, path, root_path)) or limits.add_route(
            method, path, root_path, is_exempt=serves_exempt(self.app, scope)
        )
        if not route.matches or (method == "OPTIONS" and limits.skips_preflights and is_preflight(scope["headers"])):
            return await self.app(scope, receive, send)
        if route.plain_key is None or FIELDS in scope:
            return await self._serve(route, scope, receive, send)
        # from here on the most common case, at the least cost: nothing to wait for but the store, nothing to give back
        try:
            key = route.plain_key(scope)
        except MissingClient as error:
            return await self._respond(scope, receive, send, missing_client_response(error))
        decision: Decision
        if limits.in_memory and next(limits.untimed):  # most decisions in memory take less time than timing them
            decision = route.check(key, route.cost)
        else:
            began_ns = perf_counter_ns()
            decision = route.check(key, route.cost) if limits.in_memory else await route.acheck(key, route.cost)
            limits.record_latency(decision, perf_counter_ns() - began_ns)
        fields = route.headers.of(decision)
        if not decision[0]:
            limits.log_refusal(route, decision, key, method)
            return await self._refuse(scope, receive, send, decision, fields)
        if decision[6]:
            await asyncio.sleep(decision.delay_s)
        told = scope[FIELDS] = [fields]  # limits inside this one add theirs, and give back what this one charged
        scope[CHARGES] = [(limits, route, key, decision, fields, limits.now_us())]

        # a plain function that returns the awaitable saves one coroutine per message
        def send_with_fields(message: Message) -> Awaitable[None]:
            kind = message["type"]
            if kind == "http.response.start" or kind == "websocket.accept":
                added = fields if len(told) == 1 else tightest(told)
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            return send(message)

        return await self.app(scope, receive, send_with_fields)

    async def _serve(self, route: LimitedRoute, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of any rules: read the body, wait for the user's functions, charge, settle, tell."""
        if route.reads_body and scope["type"] == "http":
            receive = await read_asgi_body(scope, receive, self.limits.max_body_bytes)
        try:
            key = await arun_steps(route.key_steps(scope))
        except MissingClient as error:
            return await self._respond(scope, receive, send, missing_client_response(error))
        if key is None:  # exempt
            return await self.app(scope, receive, send)
        charge = await self.limits.adecide(route, key, scope.get("method", "GET"))
        told, settled = tell_charge(scope, charge, FIELDS), False
        if not charge.decision.allowed:
            await agive_back(scope)
            return await self._refuse(scope, receive, send, charge.decision, told.to_write())
        if charge.decision.delay_us:
            await asyncio.sleep(charge.decision.delay_s)

        async def send_settled(message: Message) -> None:
            nonlocal settled
            if message["type"] in _STARTS and not settled:
                settled = True
                told.replace(await self.limits.asettle(charge, message.get("status", 200)))
                message = {**message, "headers": [*message.get("headers", ()), *told.to_write()]}
            await send(message)

        try:
            await self.app(scope, receive, send_settled)
        except Exception:
            if not settled:  # the server answers with 500
                await self.limits.asettle(charge, 500)
            raise

    def _refuse(
        self, scope: Scope, receive: Receive, send: Send, decision: Decision, fields: list[Field]
    ) -> Awaitable[None]:
        """Answer a refused request, with the application's own body if it has one."""
        response = refusal_response(decision, fields)
        if self.limits.on_refused is not None and scope["type"] == "http":
            return self._respond_own(self.limits.on_refused(scope, decision), response, scope, receive, send)
        return self._respond(scope, receive, send, response)

    async def _respond_own(self, made: Any, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        if inspect.isawaitable(made):
            made = await made
        if callable(made):  # an ASGI application, like Starlette's Response
            answer: App = through_cors(self.app, made) if is_cross_origin(scope) else made
            return await answer(scope, receive, _with_fields(send, response[1][2:]))
        await self._respond(scope, receive, send, own_response(made, response))

    def _respond(self, scope: Scope, receive: Receive, send: Send, response: Response) -> Awaitable[None]:
        """Send a whole response in place of the application's."""
        if not is_cross_origin(scope):
            return _send_response(scope, receive, send, *response)

        def answer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
            return _send_response(scope, receive, send, *response)

        return cast(Awaitable[None], through_cors(self.app, answer)(scope, receive, send))

    def close(self) -> None:
        """Close the store's blocking connections."""
        self.limits.close()

    async def aclose(self) -> None:
        """Close the store's connections."""
        await self.limits.aclose()


_STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")


def _with_fields(send: Send, fields: list[Field]) -> Send:
    async def send_with_fields(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *fields]}
        await send(message)

    return send_with_fields


async def _send_response(
    scope: Scope, receive: Receive, send: Send, status: int, fields: list[Field], body: bytes
) -> None:
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


def _peer(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def _forwarded(scope: Scope) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == b"x-forwarded-for"]


SCOPES = RequestSource(
    peer=_peer,
    forwarded=_forwarded,
    header=header,
    user=lambda scope: scope.get("user"),
    body=lambda scope, max_bytes: scope.get(BODY),
    can_wait=True,
)
