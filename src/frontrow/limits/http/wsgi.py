"""The limiter as a plain WSGI class, the twin of `asgi.py`: same rules, same fields, same answers.

    app.wsgi_app = RateLimitMiddleware(app.wsgi_app, rules="100/minute")   # Flask

The path is `PATH_INFO`, decoded by the server: what WSGI applications route on; `SCRIPT_NAME` is the mount point.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
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

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class RateLimitMiddleware:
    """Stands in front of a WSGI application."""

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

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        gate, method = self.gate, environ["REQUEST_METHOD"]
        mount, path = _text(environ.get("SCRIPT_NAME", "")), _text(environ.get("PATH_INFO", ""))
        place = (method, mount + path, mount)
        route = gate.routes.get(place) or gate.route(*place)
        if not route.matches:
            return self.app(environ, start_response)
        try:
            key = route.key_of(environ)
        except MissingClient as error:
            return _answer(environ, start_response, *missing_answer(error))
        if gate.in_memory and next(gate.turns):
            decision = route.check(key, route.cost)
        else:
            began_ns = perf_counter_ns()
            decision = route.check(key, route.cost)
            gate.took(decision, perf_counter_ns() - began_ns)
        told = route.fields if route.tier_fields is None else route.tier_fields.get(key.get(TIER_PART), route.fields)
        fields = told.of(decision)
        if not decision.allowed:
            gate.refused(decision, key, method)
            return _answer(environ, start_response, *refused_answer(decision, fields))
        if decision.delay_us:
            time.sleep(decision.delay_s)
        added = _as_text(fields)

        def start_with_fields(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            return start_response(status, [*headers, *added], *error)

        return self.app(environ, start_with_fields)

    def close(self) -> None:
        """Close the store's connections."""
        self.gate.close()


def _answer(
    environ: Environ, start_response: StartResponse, status: int, fields: list[Field], body: bytes
) -> Iterable[bytes]:
    start_response(f"{status} {HTTPStatus(status).phrase}", _as_text(fields))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def _as_text(fields: list[Field]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


def _text(path: str) -> str:
    """WSGI hands bytes over as Latin-1; paths are UTF-8."""
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")


def header(name: str) -> Getter:
    """Reads one request header. Servers join what was sent twice with a comma; such a value says nothing."""
    wanted = "HTTP_" + name.upper().replace("-", "_")

    def get(environ: Environ) -> str | None:
        value = str(environ.get(wanted, "")).strip()
        return value if value and "," not in value else None

    return get


def _address(clients: ClientAddress) -> Getter:
    def get(environ: Environ) -> str | None:
        forwarded = environ.get("HTTP_X_FORWARDED_FOR", "")
        return clients.key(environ.get("REMOTE_ADDR"), [forwarded] if forwarded else [])

    return get


def _user(environ: Environ) -> str | None:
    return user_name(environ.get("REMOTE_USER"))


_key_header = header("x-api-key")


def _api_key(environ: Environ) -> str | None:
    return secret_key(_key_header(environ))
