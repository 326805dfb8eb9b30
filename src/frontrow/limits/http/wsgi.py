"""The limiter as plain WSGI middleware, the twin of `asgi.py`: same rules, same headers, same responses.

    app.wsgi_app = RateLimitMiddleware(app.wsgi_app, rules="100/minute")   # Flask

The path is `PATH_INFO` as decoded by the server, which is what WSGI applications route on. `SCRIPT_NAME` is the mount
point.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from frontrow.limits.config import load_config
from frontrow.limits.http.caller_identity import make_getters, secret_key, user_name
from frontrow.limits.http.client import ClientAddress
from frontrow.limits.http.headers import Field
from frontrow.limits.http.refusal_responses import missing_client_response, refusal_response
from frontrow.limits.http.request_limits import Getter, MissingClient, RequestLimits
from frontrow.limits.http.rule_conversion import TIER_PART, Rules

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class RateLimitMiddleware:
    """Limits the requests of a WSGI application."""

    def __init__(
        self,
        app: App,
        rules: Rules,
        store: Any = "memory://",
        *,
        identify: Mapping[str, str | Getter] | None = None,
        trusted_proxies: Iterable[str] = (),
        ipv6_prefix: int = 64,
        **options: Any,
    ) -> None:
        self.app = app
        clients = ClientAddress(trusted_proxies, ipv6_prefix=ipv6_prefix)
        standard: dict[str, Getter] = {"ip": _address(clients), "user": _user, "api_key": _api_key}
        self.limits = RequestLimits(rules, make_getters(standard, identify or {}, header), store=store, **options)

    @classmethod
    def from_config(cls, app: App, path: str | Path | None = None, **options: Any) -> "RateLimitMiddleware":
        """Configured by a TOML file and the environment; `middleware.limits.book.reload()` reads them again."""
        return cls(app, **{**load_config(path).middleware_options(), **options})

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        limits, method = self.limits, environ["REQUEST_METHOD"]
        mount, path = _text(environ.get("SCRIPT_NAME", "")), _text(environ.get("PATH_INFO", ""))
        route_key = (method, mount + path, mount)
        route = limits.routes.get(route_key) or limits.add_route(*route_key)
        if not route.matches:
            return self.app(environ, start_response)
        try:
            key = route.key_of(environ)
        except MissingClient as error:
            return _send_response(environ, start_response, *missing_client_response(error))
        if limits.in_memory and next(limits.untimed):
            decision = route.check(key, route.cost)
        else:
            began_ns = perf_counter_ns()
            decision = route.check(key, route.cost)
            limits.record_latency(decision, perf_counter_ns() - began_ns)
        headers = route.headers
        if route.tier_headers is not None:
            headers = route.tier_headers.get(key.get(TIER_PART), headers)
        fields = headers.of(decision)
        if not decision.allowed:
            limits.log_refusal(decision, key, method)
            return _send_response(environ, start_response, *refusal_response(decision, fields))
        if decision.delay_us:
            time.sleep(decision.delay_s)
        added = _as_text(fields)

        def start_with_fields(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            return start_response(status, [*headers, *added], *error)

        return self.app(environ, start_with_fields)

    @property
    def gate(self) -> RequestLimits:
        """The old name of `limits`. It goes away in 0.3."""
        warnings.warn("RateLimitMiddleware.gate is now .limits", DeprecationWarning, stacklevel=2)
        return self.limits

    def close(self) -> None:
        """Close the store's connections."""
        self.limits.close()


def _send_response(
    environ: Environ, start_response: StartResponse, status: int, fields: list[Field], body: bytes
) -> Iterable[bytes]:
    start_response(f"{status} {HTTPStatus(status).phrase}", _as_text(fields))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def _as_text(fields: list[Field]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


def _text(path: str) -> str:
    """WSGI decodes paths as Latin-1, but they are UTF-8."""
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")


def header(name: str) -> Getter:
    """Reads one request header. Servers join repeated headers with a comma; such a value counts as missing."""
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
