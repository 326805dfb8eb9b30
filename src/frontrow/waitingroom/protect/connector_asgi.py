"""The connector in front of any ASGI shop: Starlette, FastAPI, Litestar, Django.

    setup = Setup("https://room.example/v1/events/aurora/room", "aurora", "https://shop.example", ["/static/"])
    app = AsgiConnector(app, Connector(setup))

The app finds the visit in `scope["frontrow.visit"]` (a `Decision`: `person`, `visit`).
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from frontrow.waitingroom.protect.connector import Decision
from frontrow.waitingroom.protect.connector_answers import answer_of
from frontrow.waitingroom.protect.connector_client import Connector

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class AsgiConnector:
    """Lets only visitors reach `app`."""

    def __init__(self, app: App, connector: Connector) -> None:
        self.app = app
        self.connector = connector

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        done = await self.decide(scope)
        answer = answer_of(done, self.connector.setup.room)
        if answer is None:
            await self.app({**scope, "frontrow.visit": done}, receive, _with_cookies(send, done))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 4401, "reason": done.code or done.action})
        else:
            status, headers, body = answer
            lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
            await send({"type": "http.response.start", "status": status, "headers": lines})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def decide(self, scope: Scope) -> Decision:
        """What to do with a request, carried out."""
        address = (scope.get("client") or ("",))[0]
        asked = scope.get("method", "GET"), wire_target(scope), joined_headers(scope), address
        if not self.connector.is_stale:
            done = self.connector.look(*asked)
            if not done.needs_room:
                return done
        return await asyncio.to_thread(self.connector.handle, *asked)


def wire_target(scope: Scope) -> str:
    """Path and query as the client sent them. A path that a server has changed is no open path."""
    raw = scope.get("raw_path")
    path = raw.decode("latin-1").partition("?")[0] if raw else scope["path"]
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path


def joined_headers(scope: Scope) -> dict[str, str]:
    """Headers by lower-case name; several of one name are joined, so none hides behind another."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}{'; ' if name == 'cookie' else ', '}{value}" if name in found else value
    return found


def _with_cookies(send: Send, done: Decision) -> Send:
    if not done.cookies:
        return send
    lines = [(b"set-cookie", line.encode("latin-1")) for line in done.cookies]

    async def sending(message: Any) -> None:
        if message["type"] in ("http.response.start", "websocket.accept"):
            message = {**message, "headers": [*message.get("headers", ()), *lines]}
        await send(message)

    return sending
