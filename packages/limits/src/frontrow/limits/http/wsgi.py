"""The limiter as plain WSGI middleware, the twin of `asgi.py`: same rules, same headers, same responses.

    app.wsgi_app = RateLimitMiddleware(app.wsgi_app, rules="100/minute")   # Flask

The path is `PATH_INFO` as decoded by the server, which is what WSGI applications route on. `SCRIPT_NAME` is the mount
point.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Unpack, cast

from frontrow.limits.config import load_config
from frontrow.limits.http.body_parts import BODY, read_wsgi_body
from frontrow.limits.http.caller_identity import Getter, RequestSource, run_steps
from frontrow.limits.http.headers import FIELDS, Field, as_text
from frontrow.limits.http.open_charges import give_back, tell_charge
from frontrow.limits.http.refusal_responses import missing_client_response, own_response, refusal_response
from frontrow.limits.http.request_limits import MissingClient, Options, RequestLimits
from frontrow.limits.http.rule_conversion import Rules
from frontrow.limits.quota import Decision

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class RateLimitMiddleware:
    """Limits the requests of a WSGI application."""

    def __init__(self, app: App, rules: Rules, store: Any = "memory://", **options: Unpack[Options]) -> None:
        self.app = app
        self.limits = RequestLimits(rules, ENVIRONS, store=store, **options)

    @classmethod
    def from_config(cls, app: App, path: str | Path | None = None, **options: Unpack[Options]) -> "RateLimitMiddleware":
        """Configured by a TOML file and the environment; `middleware.limits.book.reload()` reads them again."""
        return cls(app, **{**load_config(path).middleware_options(), **options})

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        limits, method = self.limits, environ["REQUEST_METHOD"]
        mount, path = _text(environ.get("SCRIPT_NAME", "")), _text(environ.get("PATH_INFO", ""))
        route_key = (method, mount + path, mount)
        route = limits.routes.get(route_key) or limits.add_route(*route_key)
        if not route.matches or (method == "OPTIONS" and limits.skips_preflights and is_preflight(environ)):
            return self.app(environ, start_response)
        if route.reads_body:
            read_wsgi_body(environ, limits.max_body_bytes)
        try:
            key = run_steps(route.key_steps(environ)) if route.plain_key is None else route.plain_key(environ)
        except MissingClient as error:
            return _send_response(environ, start_response, *missing_client_response(error))
        if key is None:  # exempt
            return self.app(environ, start_response)
        charge = limits.decide(route, key, method)
        told = tell_charge(environ, charge, FIELDS)
        if not charge.decision.allowed:
            give_back(environ)
            return self._refuse(environ, start_response, charge.decision, told.to_write())
        if charge.decision.delay_us:
            time.sleep(charge.decision.delay_s)
        settled = False

        def start_settled(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            nonlocal settled
            if not settled:
                settled = True
                told.replace(limits.settle(charge, int(status[:3])))
            return start_response(status, [*headers, *as_text(told.to_write())], *error)

        def settle_failure() -> None:
            if not settled:  # the server answers with 500
                limits.settle(charge, 500)

        try:
            body = self.app(environ, start_settled)
        except Exception:
            settle_failure()
            raise
        return body if settled or not charge.route.refundable else _LazyBody(body, settle_failure)

    def _refuse(
        self, environ: Environ, start_response: StartResponse, decision: Decision, fields: list[Field]
    ) -> Iterable[bytes]:
        """Answer a refused request, with the application's own body if it has one."""
        response = refusal_response(decision, fields)
        if self.limits.on_refused is not None:
            made = self.limits.on_refused(environ, decision)
            if callable(made):  # a WSGI application, like Flask's Response
                added = as_text(response[1][2:])
                return cast(App, made)(
                    environ, lambda status, headers, *error: start_response(status, [*headers, *added], *error)
                )
            response = own_response(made, response)
        return _send_response(environ, start_response, *response)

    def close(self) -> None:
        """Close the store's connections."""
        self.limits.close()


class _LazyBody:
    """The body of an application that has not called `start_response` yet: a generator may fail before it does."""

    __slots__ = ("_body", "_failed", "_pieces")

    def __init__(self, body: Iterable[bytes], failed: Callable[[], None]) -> None:
        self._body, self._failed = body, failed
        self._pieces: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            if self._pieces is None:
                self._pieces = iter(self._body)
            return next(self._pieces)
        except StopIteration:
            raise
        except Exception:
            self._failed()
            raise

    def close(self) -> None:
        """The server calls this, also for a response that it has not read to its end."""
        close = getattr(self._body, "close", None)
        if close is not None:
            close()


def _send_response(
    environ: Environ, start_response: StartResponse, status: int, fields: list[Field], body: bytes
) -> Iterable[bytes]:
    start_response(f"{status} {HTTPStatus(status).phrase}", as_text(fields))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def is_preflight(environ: Environ) -> bool:
    """Whether this OPTIONS request is a CORS preflight."""
    return "HTTP_ORIGIN" in environ and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ


def _text(path: str) -> str:
    """WSGI decodes paths as Latin-1, but they are UTF-8."""
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")


def header(name: str) -> Getter:
    """Reads one request header. Servers join repeated headers with a comma; such a value counts as missing."""
    plain = name.upper().replace("-", "_")
    wanted = plain if plain in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{plain}"

    def get(environ: Environ) -> str | None:
        value = str(environ.get(wanted, "")).strip()
        return value if value and "," not in value else None

    return get


def _forwarded(environ: Environ) -> list[str]:
    forwarded = environ.get("HTTP_X_FORWARDED_FOR", "")
    return [forwarded] if forwarded else []


ENVIRONS = RequestSource(
    peer=lambda environ: environ.get("REMOTE_ADDR"),
    forwarded=_forwarded,
    header=header,
    user=lambda environ: environ.get("REMOTE_USER"),
    body=lambda environ, max_bytes: environ.get(BODY),
    can_wait=False,
)
