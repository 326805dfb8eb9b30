"""ASGI middleware that requires a pass for every request. A pass seen before costs a dictionary lookup.

    app = PassMiddleware(app, Guard(PassKeys("https://room/.well-known/jwks.json", "aurora"), "/room/"))

The app finds the pass in `scope["frontrow.pass"]`. A WebSocket without a pass is closed before its handshake.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.protect.guard import PASS_HEADER, Guard, pass_from, wants_page

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class PassMiddleware:
    """Requires a pass in front of `app`. `person_of(scope)` may name the signed-in person; the pass must be theirs."""

    def __init__(self, app: App, guard: Guard, *, person_of: Callable[[Scope], str | None] | None = None) -> None:
        self.app = app
        self.guard = guard
        self.person_of = person_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        raw_path = scope.get("raw_path")
        path = raw_path.decode("latin-1") if raw_path else scope["path"]
        if self.guard.is_open(path) and scope["path"] == path:
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        given = pass_from(
            headers.get("authorization"),
            headers.get(PASS_HEADER),
            headers.get("cookie"),
            secure=self.guard.secure_cookies,
        )
        person = self.person_of(scope) if self.person_of else None
        try:
            if self._may_fetch(given):
                visit = await asyncio.to_thread(self.guard.admit, given, person)
            else:
                visit = self.guard.admit(given, person)
        except FrontrowError as error:
            await self._refuse(scope, send, error, path, headers.get("accept"))
            return
        await self.app({**scope, "frontrow.pass": visit}, receive, send)

    def _may_fetch(self, given: str | None) -> bool:
        """Whether the verifier may fetch keys over the network, which must not happen in the event loop."""
        may_fetch = getattr(self.guard.verify, "may_fetch", None)
        return bool(given and may_fetch and may_fetch(given))

    async def _refuse(self, scope: Scope, send: Send, error: FrontrowError, path: str, accept: str | None) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 4401, "reason": error.code})
            return
        if wants_page(scope["method"], accept) and error.http_status in (401, 403):
            query = scope.get("query_string", b"").decode("latin-1")
            where = self.guard.redirect_to(path, query).encode("latin-1", "replace")
            headers = [(b"location", where), (b"cache-control", b"no-store"), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 303, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        body = json.dumps(error.problem()).encode()
        headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": error.http_status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
