"""The applications that the HTTP contract runs over: Starlette, Litestar and Flask, and a real uvicorn server.

Every application trusts 127.0.0.1 as a proxy, so a request's address is set by `X-Forwarded-For` everywhere.
"""

import asyncio
import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from frontrow.limits.http import asgi, wsgi
from tests.support.eventually import eventually_sync

PATHS = ["/", "/holds", "/events/1/holds", "/events/2/holds", "/public", "/reports"]


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class LimitedApp:
    """One application behind the middleware; `ask` sends a request, `served` counts what reached the application."""

    wrapped: Any
    send: Callable[..., Answer]
    calls: list[str]
    close: Callable[[], None] = field(default=lambda: None)

    @property
    def limits(self) -> Any:
        return self.wrapped.limits

    def ask(
        self, method: str = "GET", path: str = "/", ip: str = "203.0.113.1", body: bytes = b"", **headers: str
    ) -> Answer:
        """Send a request. The application answers with the status in `x_answer` and with the body that it got."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        length = {"content-length": str(len(body))} if body else {}
        return self.send(method, path, {"x-forwarded-for": ip, "host": "shop.test", **length, **named}, body)

    @property
    def served(self) -> int:
        return len(self.calls)


def starlette_app(calls: list[str]) -> Any:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def endpoint(request: Any) -> Any:
        calls.append(request.url.path)
        return PlainTextResponse(await request.body() or "served", int(request.headers.get("x-answer", 200)))

    return Starlette(routes=[Route(path, endpoint, methods=["GET", "POST"]) for path in PATHS])


def litestar_app(calls: list[str]) -> Any:
    from litestar import Litestar, Request, Response, route

    @route(PATHS, http_method=["GET", "POST"], media_type="text/plain", status_code=200)
    async def endpoint(request: Request[Any, Any, Any]) -> Response[bytes]:
        calls.append(request.url.path)
        return Response(await request.body() or b"served", status_code=int(request.headers.get("x-answer", 200)))

    return Litestar([endpoint], openapi_config=None)


def flask_app(calls: list[str]) -> Any:
    import flask

    app = flask.Flask("shop")

    def endpoint() -> Any:
        calls.append(flask.request.path)
        return flask.request.get_data() or b"served", int(flask.request.headers.get("x-answer", 200))

    for path in PATHS:
        app.add_url_rule(path, path, endpoint, methods=["GET", "POST"])
    return app


async def call_asgi(
    app: Any, method: str, path: str, headers: dict[str, str], peer: str = "127.0.0.1", body: bytes = b""
) -> Answer:
    """One request, driven by hand: the path arrives decoded, as servers hand it over. The body comes in two pieces."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
        "client": (peer, 50000),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    sent: list[Any] = []
    pieces = [body[:7], body[7:]]

    async def receive() -> Any:
        if not pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    fields = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], fields, b"".join(message.get("body", b"") for message in sent[1:]))


def limited_asgi_app(
    make: Callable[[list[str]], Any], middleware: Any = asgi.RateLimitMiddleware, **options: Any
) -> LimitedApp:
    calls: list[str] = []
    wrapped = middleware(make(calls), trusted_proxies=["127.0.0.1"], **options)
    runner = asyncio.Runner()

    def send(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        return runner.run(call_asgi(wrapped, method, path, headers, body=body))

    def close() -> None:
        with runner:
            runner.run(wrapped.aclose())

    return LimitedApp(wrapped, send, calls, close)


def limited_flask_app(**options: Any) -> LimitedApp:
    calls: list[str] = []
    app = flask_app(calls)
    wrapped = wsgi.RateLimitMiddleware(app.wsgi_app, trusted_proxies=["127.0.0.1"], **options)
    app.wsgi_app = wrapped

    def send(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        raw = unquote_to_bytes(path).decode("latin-1")  # as a WSGI server hands it over; the client would parse // away
        environ = {"REMOTE_ADDR": "127.0.0.1", "PATH_INFO": raw}
        response = app.test_client().open("/", method=method, headers=headers, environ_overrides=environ, data=body)
        return Answer(
            response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.data
        )

    return LimitedApp(wrapped, send, calls, wrapped.close)


class Uvicorn:
    """A real server on a port of the system's choice, in a thread, until closed."""

    def __init__(self, app: Any) -> None:
        import uvicorn

        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off", proxy_headers=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        eventually_sync(self._is_started)
        self.port: int = self.server.servers[0].sockets[0].getsockname()[1]

    def _is_started(self) -> bool:
        assert self.thread.is_alive(), "uvicorn ended"
        return bool(self.server.started)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()


def limited_uvicorn_app(**options: Any) -> LimitedApp:
    calls: list[str] = []
    wrapped = asgi.RateLimitMiddleware(starlette_app(calls), trusted_proxies=["127.0.0.1"], **options)
    server = Uvicorn(wrapped)
    return LimitedApp(wrapped, server.send, calls, server.close)


APPS: dict[str, Callable[..., LimitedApp]] = {
    "starlette": lambda **options: limited_asgi_app(starlette_app, **options),
    "litestar": lambda **options: limited_asgi_app(litestar_app, **options),
    "flask": limited_flask_app,
    "uvicorn": limited_uvicorn_app,
}
