"""ASGI middleware of a room that is served alone: answers to counted requests say what is left of the limits.

The platform's own middleware (`request_middleware`) does the same beside much else.
"""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from frontrow.limits import Decision
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, counted
from frontrow.web.server.request_middleware import limit_fields


class LimitHeadersMiddleware:
    """Adds the headers of the limits to every answer of a request that was counted."""

    def __init__(self, app: ASGIApp, entry: EntranceLimits) -> None:
        self._app, self._entry = app, entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        noted: list[Decision] = []
        counted.set(noted)
        client = scope.get("client")
        forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        ip = self._entry.ip_of(client[0] if client else "", forwarded)

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = limit_fields(self._entry, noted, ip, message["status"])
                message["headers"] = [*message.get("headers", ()), *told]
            await send(message)

        await self._app(scope, receive, tell)
