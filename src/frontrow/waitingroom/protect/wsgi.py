"""WSGI middleware: the same check in front of Flask, Django and every other WSGI shop.

The app finds the pass in `environ["frontrow.pass"]`.
"""

import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.protect.guard import Guard, pass_from, wants_page

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
PATH_CHARS = "/._~!$&'()*+,;=:@-"  # what a browser writes in a path as it is
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class PassMiddleware:
    """Requires a pass in front of `app`. `person_of(environ)` may name the signed-in person, whose pass it must be."""

    def __init__(self, app: App, guard: Guard, *, person_of: Callable[[Environ], str | None] | None = None) -> None:
        self.app = app
        self.guard = guard
        self.person_of = person_of

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = _wire_path(environ)
        if self.guard.is_open(path):
            return self.app(environ, start_response)
        given = pass_from(
            environ.get("HTTP_AUTHORIZATION"),
            environ.get("HTTP_FRONTROW_PASS"),
            environ.get("HTTP_COOKIE"),
            secure=self.guard.secure_cookies,
        )
        try:
            visit = self.guard.admit(given, self.person_of(environ) if self.person_of else None)
        except FrontrowError as error:
            return self._refuse(environ, start_response, error)
        environ["frontrow.pass"] = visit
        return self.app(environ, start_response)

    def _refuse(self, environ: Environ, start_response: StartResponse, error: FrontrowError) -> Iterable[bytes]:
        method = environ.get("REQUEST_METHOD", "GET")
        if wants_page(method, environ.get("HTTP_ACCEPT")) and error.http_status in (401, 403):
            where = self.guard.redirect_to(_wanted_path(environ), environ.get("QUERY_STRING", ""))
            headers = [("Location", where), ("Cache-Control", "no-store"), ("Content-Length", "0")]
            start_response("303 See Other", headers)
            return [b""]
        body = json.dumps(error.problem()).encode()
        headers = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")]
        headers.append(("Content-Length", str(len(body))))
        start_response(f"{error.http_status} {HTTPStatus(error.http_status).phrase}", headers)
        return [b"" if method == "HEAD" else body]


def _wanted_path(environ: Environ) -> str:
    """The path to come back to, as a browser writes it."""
    decoded: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return quote(decoded.encode("latin-1", "replace"), safe=PATH_CHARS)


def _wire_path(environ: Environ) -> str:
    """The path as the client wrote it if the server has it, else the decoded one. An unusual path is never open."""
    raw = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    decoded: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    if raw and raw.startswith("/"):
        wire: str = raw.partition("?")[0]
        return wire if wire == decoded else "\0"  # written in an unusual way: never open
    return decoded
