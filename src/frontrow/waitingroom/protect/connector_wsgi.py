"""The connector in front of any WSGI shop: Flask, Pyramid, Django.

    app = WsgiConnector(app, Connector(setup))

The app finds the visit in `environ["frontrow.visit"]` (a `Decision`: `person`, `visit`).
"""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from frontrow.waitingroom.protect.connector_answers import answer_of
from frontrow.waitingroom.protect.connector_client import Connector

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]
PATH_CHARS = "/._~!$&'()*+,;=:@-"


class WsgiConnector:
    """Lets only visitors reach `app`."""

    def __init__(self, app: App, connector: Connector) -> None:
        self.app = app
        self.connector = connector

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        method = environ.get("REQUEST_METHOD", "GET")
        done = self.connector.handle(method, wire_target(environ), headers_of(environ), environ.get("REMOTE_ADDR", ""))
        answer = answer_of(done, self.connector.setup.room)
        if answer is not None:
            status, headers, body = answer
            start_response(f"{status} {HTTPStatus(status).phrase}", headers)
            return [b"" if method == "HEAD" else body]
        environ["frontrow.visit"] = done
        if not done.cookies:
            return self.app(environ, start_response)
        cookies = [("Set-Cookie", line) for line in done.cookies]

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, *cookies], *more)

        return self.app(environ, start)


def wire_target(environ: Environ) -> str:
    """Path and query as the client sent them, if the server tells; else the decoded path, encoded again."""
    raw: str = environ.get("RAW_URI") or environ.get("REQUEST_URI") or ""
    if raw:
        return raw
    decoded: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    path, query = quote(decoded.encode("latin-1", "replace"), safe=PATH_CHARS), environ.get("QUERY_STRING", "")
    return f"{path}?{query}" if query else path


def headers_of(environ: Environ) -> dict[str, str]:
    """The headers that a connector reads."""
    names = ("accept", "cookie", "frontrow-pass", "origin", "sec-fetch-site", "frontrow-bypass", "user-agent")
    found = {name: environ.get(f"HTTP_{name.upper().replace('-', '_')}") for name in names}
    return {name: value for name, value in found.items() if value}
