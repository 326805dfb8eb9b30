"""`X-Content-Type-Options: nosniff` on every answer: browsers take no answer for something else than it says it is.

The server itself writes the line (`SERVER_HEADERS`), so it is also on refusals and errors that no route makes. Routes
may write it as well, for other servers; here it is taken off again, so that it is there once.
"""

from typing import Any, Final

SERVER_HEADERS: Final = [("x-content-type-options", "nosniff")]
NAME: Final = b"x-content-type-options"


class OnceOnly:
    """The app without its own lines of what the server writes."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_on(message: Any) -> None:
            if message["type"] == "http.response.start":
                pairs = message.get("headers", ())
                if any(name == NAME for name, _ in pairs):
                    message = {**message, "headers": [pair for pair in pairs if pair[0] != NAME]}
            await send(message)

        await self._app(scope, receive, send_on if scope["type"] == "http" else send)
