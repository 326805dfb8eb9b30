"""The connector for nginx and other proxies that ask before they let a request through (`auth_request`, forward-auth).

    FRONTROW_CONNECTOR_ROOM=https://room.example/v1/events/aurora/room FRONTROW_CONNECTOR_EVENT=aurora \
    FRONTROW_CONNECTOR_SHOP=https://shop.example FRONTROW_CONNECTOR_OPEN=/static/,/health \
    FRONTROW_CONNECTOR_RULES_KEY=… FRONTROW_CONNECTOR_ADDRESS=X-Original-Address \
    uvicorn frontrow.waitingroom.protect.forward_auth:app --uds /run/frontrow.sock --no-access-log

It runs beside the proxy and is reached by nobody else. The proxy sends what the client sent in `X-Original-Method` and
`X-Original-URI`, and the client's own headers. 204: let through, with `Frontrow-Person`
(percent-encoded) and perhaps `Set-Cookie`. 401:
answer with `Frontrow-Status`, `Location` and `Set-Cookie` of this answer.

With a key for the rules of the room, `FRONTROW_CONNECTOR_ADDRESS` names the header in which the proxy says who the
client is. The proxy must set that header itself: without it nobody comes in by their address.
"""

import os
from typing import Any
from urllib.parse import quote

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.protect.connector import Setup
from frontrow.waitingroom.protect.connector_answers import answer_of
from frontrow.waitingroom.protect.connector_asgi import AsgiConnector, Receive, Scope, Send, joined_headers
from frontrow.waitingroom.protect.connector_client import Connector


class ForwardAuth:
    """An ASGI app that decides for a proxy."""

    def __init__(self, connector: Connector, address_header: str = "") -> None:
        self._connector = AsgiConnector(_nobody, connector)
        self._address_header = address_header.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        told = joined_headers(scope)
        path, _, query = told.get("x-original-uri", "").partition("?")
        asked = {
            **scope,
            "method": told.get("x-original-method", "GET"),
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "client": (told.get(self._address_header, "") if self._address_header else "", 0),
        }
        done = await self._connector.decide(asked)
        answer = answer_of(done, self._connector.connector.setup.room)
        if answer is None:
            status, headers, body = 204, [("Frontrow-Person", quote(done.person, safe=""))], b""
            headers += [("Set-Cookie", line) for line in done.cookies]
        else:
            status, headers, body = 401, [*answer[1], ("Frontrow-Status", str(answer[0]))], answer[2]
        lines = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": lines})
        await send({"type": "http.response.body", "body": body})


async def _nobody(scope: Scope, receive: Receive, send: Send) -> None:
    """The shop is behind the proxy."""


def setup_of(environment: dict[str, str]) -> Setup:
    """The setup in `FRONTROW_CONNECTOR_…`. Raises ConfigError."""
    names = {part: f"FRONTROW_CONNECTOR_{part.upper()}" for part in ("room", "event", "shop")}
    for name in names.values():
        if not environment.get(name):
            raise ConfigError(f"{name} must be set", param=name)
    paths = tuple(filter(None, environment.get("FRONTROW_CONNECTOR_OPEN", "").split(",")))
    return Setup(
        **{part: environment[name] for part, name in names.items()},
        open_paths=paths,
        rules_key=environment.get("FRONTROW_CONNECTOR_RULES_KEY", ""),
    )


def __getattr__(name: str) -> Any:
    """`app`, made when a server asks for it."""
    if name == "app":
        return ForwardAuth(Connector(setup_of(dict(os.environ))), os.environ.get("FRONTROW_CONNECTOR_ADDRESS", ""))
    raise AttributeError(name)
