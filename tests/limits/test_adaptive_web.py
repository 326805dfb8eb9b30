"""O7: an adaptive limit around ASGI and WSGI applications, and around outgoing clients."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import httpx
import pytest
import requests
from starlette.middleware.cors import CORSMiddleware

from frontrow.core.errors import ConfigError
from frontrow.limits.adaptive import AdaptiveLimit, AimdLimit, Shed
from frontrow.limits.adaptive import asgi as asgi_module
from frontrow.limits.adaptive import wsgi as wsgi_module
from frontrow.limits.outgoing import adaptive_sending
from frontrow.limits.outgoing.adaptive_sending import AdaptiveSender
from frontrow.limits.outgoing.aiohttp_middleware import AdaptiveRequests
from frontrow.limits.outgoing.httpx_transport import AdaptiveTransport, AsyncAdaptiveTransport
from frontrow.limits.outgoing.requests_adapter import AdaptiveAdapter
from tests.limits.cancellation import cancel_at_every_await
from tests.support.eventually import eventually

PATHS = {"critical": ["/pay/**"], "background": ["/reports"]}


def fixed(at_once: int, **options) -> AdaptiveLimit:
    options.setdefault("max_wait_s", 0)
    return AdaptiveLimit("test", controller=AimdLimit(initial=at_once, least=1, most=at_once), **options)


class AsgiApp:
    """Answers when it is told to."""

    def __init__(self, status: int = 200, kind: bytes = b"text/plain") -> None:
        self.go, self.status, self.kind = asyncio.Event(), status, kind
        self.after_start = asyncio.Event()
        self.after_start.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.go.wait()
        await send({"type": "http.response.start", "status": self.status, "headers": [(b"content-type", self.kind)]})
        await self.after_start.wait()
        await send({"type": "http.response.body", "body": b"ok"})


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test")


async def test_o7_asgi_sheds_the_lower_classes_with_503_and_retry_after_and_lets_health_checks_pass() -> None:
    app = AsgiApp()
    limited = asgi_module.AdaptiveLimitMiddleware(app, fixed(5, retry_after_s=3), paths=PATHS)
    async with client_of(limited) as client:
        waiting = [asyncio.create_task(client.get("/reports")) for _ in range(3)]
        waiting += [asyncio.create_task(client.get("/anything")) for _ in range(1)]
        await eventually(lambda: limited.limit.in_flight == 4)
        shed = await client.get("/reports")
        assert (shed.status_code, shed.headers["retry-after"]) == (503, "3")
        assert shed.headers["content-type"] == "application/problem+json"
        assert shed.json()["title"] == "Temporarily reduced capacity"
        assert (await client.get("/anything")).status_code == 503
        waiting.append(asyncio.create_task(client.get("/pay/42")))
        await eventually(lambda: limited.limit.in_flight == 5)
        assert (await client.get("/pay/42")).status_code == 503
        waiting.append(asyncio.create_task(client.get("/healthz")))
        app.go.set()
        assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}
    assert limited.limit.in_flight == 0


async def test_o7_asgi_leaks_no_slot_when_cancelled_at_any_await() -> None:
    limited = asgi_module.AdaptiveLimitMiddleware(AsgiApp(), fixed(1), paths=PATHS)
    limited.app.go.set()

    async def turn(*_: Any) -> Any:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b""}

    async for _ in cancel_at_every_await(
        lambda: limited({"type": "http", "method": "GET", "path": "/pay/1", "headers": []}, turn, turn)
    ):
        assert limited.limit.in_flight == 0


async def test_o7_asgi_a_live_stream_gives_its_slot_back_when_it_starts() -> None:
    app = AsgiApp(kind=b"text/event-stream")
    app.go.set()
    app.after_start.clear()
    limited = asgi_module.AdaptiveLimitMiddleware(app, fixed(1), otherwise="critical")
    async with client_of(limited) as client:
        stream = asyncio.create_task(client.get("/live"))
        await eventually(lambda: limited.limit.admitted[2] == 1 and limited.limit.in_flight == 0)
        assert not stream.done()
        app.after_start.set()
        await stream


@pytest.mark.parametrize(("status", "drops"), [(200, 0), (404, 0), (500, 0), (503, 1), (504, 1)])
async def test_o7_asgi_503_and_504_count_as_drops(status: int, drops: int) -> None:
    app = AsgiApp(status)
    app.go.set()
    limited = asgi_module.AdaptiveLimitMiddleware(app, fixed(1), otherwise="critical")
    async with client_of(limited) as client:
        assert (await client.get("/")).status_code == status
    assert sum(limited.limit.drop_counts) == drops


async def test_o7_asgi_a_browser_s_script_can_read_the_refusal() -> None:
    app = AsgiApp()
    limited = asgi_module.AdaptiveLimitMiddleware(CORSMiddleware(app, allow_origins=["*"]), fixed(1))
    async with client_of(limited) as client:
        with limited.limit.acquire("critical"):
            shed = await client.get("/", headers={"origin": "https://shop.test"})
    assert (shed.status_code, shed.headers["access-control-allow-origin"]) == (503, "*")


async def test_o7_asgi_classify_may_decide_and_other_kinds_of_scope_pass() -> None:
    header = lambda scope: dict(scope["headers"]).get(b"x-class", b"").decode() or None  # noqa: E731
    app = AsgiApp()
    app.go.set()
    limited = asgi_module.AdaptiveLimitMiddleware(app, fixed(10), paths=PATHS, classify=header)
    async with client_of(limited) as client:
        await client.get("/reports", headers={"x-class": "critical"})
        await client.get("/reports")
    assert limited.limit.admitted == [1, 0, 1]
    passed = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["type"])

    for kind in ("lifespan", "websocket"):
        await asgi_module.AdaptiveLimitMiddleware(inner, fixed(1))({"type": kind}, None, None)
    assert passed == ["lifespan", "websocket"]


def test_o7_a_path_with_two_classes_and_an_unknown_class_are_told() -> None:
    with pytest.raises(ConfigError, match="two classes"):
        asgi_module.AdaptiveLimitMiddleware(None, paths={"critical": ["/a"], "normal": ["/a"]})
    with pytest.raises(ConfigError, match="one of background, normal, critical"):
        wsgi_module.AdaptiveLimitMiddleware(None, paths={"urgent": ["/a"]})


# -- WSGI ------------------------------------------------------------------------------------------------------------


def call_wsgi(app: Any, path: str, method: str = "GET") -> tuple[str, dict[str, str], Any]:
    started: list[Any] = []
    body = app({"REQUEST_METHOD": method, "PATH_INFO": path}, lambda *given: started.append(given))
    return started[0][0], dict(started[0][1]), body


def test_o7_wsgi_holds_a_slot_until_the_body_is_closed_and_sheds_the_lower_classes() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return [b"a", b"b"]

    limited = wsgi_module.AdaptiveLimitMiddleware(app, fixed(2), paths=PATHS)
    _, _, body = call_wsgi(limited, "/reports")
    assert limited.limit.in_flight == 1
    status, headers, shed = call_wsgi(limited, "/reports")
    assert (status, headers["retry-after"]) == ("503 Service Unavailable", "1")
    assert b"reduced capacity" in b"".join(shed)
    assert call_wsgi(limited, "/reports", "HEAD")[2] == [b""]
    assert call_wsgi(limited, "/healthz")[0] == "200 OK"
    _, _, paid = call_wsgi(limited, "/pay/1")
    assert b"".join(paid) == b"ab"
    body.close()
    body.close()
    assert limited.limit.in_flight == 0


def test_o7_wsgi_an_application_that_fails_gives_its_slot_back() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        raise TimeoutError

    limited = wsgi_module.AdaptiveLimitMiddleware(app, fixed(1), otherwise="critical")
    for _ in range(3):
        with pytest.raises(TimeoutError):
            call_wsgi(limited, "/")
    assert limited.limit.drop_counts == [0, 0, 3]


# -- outgoing --------------------------------------------------------------------------------------------------------


class Upstream:
    """A server that holds its answers back until it is told."""

    def __init__(self) -> None:
        upstream, self.go, self.status = self, threading.Event(), 200

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                upstream.go.wait(30)
                self.send_response(upstream.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/"
        self.host = self.url[7:-1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self.go.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def upstream():
    server = Upstream()
    yield server
    server.close()


ONE: dict[str, Any] = {"controller": AimdLimit(initial=1, least=1, most=1), "max_wait_s": 0.01, "priority": "critical"}


async def by_httpx(url: str, sender: list[AdaptiveSender]) -> int:
    transport = AsyncAdaptiveTransport(**ONE)
    sender.append(transport.sender)
    async with httpx.AsyncClient(transport=transport) as client:
        first = asyncio.create_task(client.get(url))
        await eventually(lambda: any(one.in_flight for one in transport.sender._limits.values()))
        with pytest.raises(Shed):
            await client.get(url)
        yield_to.set()
        return (await first).status_code


async def by_aiohttp(url: str, sender: list[AdaptiveSender]) -> int:
    middleware = AdaptiveRequests(**ONE)
    sender.append(middleware.sender)
    async with aiohttp.ClientSession(middlewares=(middleware,)) as session:
        first = asyncio.create_task(session.get(url))
        await eventually(lambda: any(one.in_flight for one in middleware.sender._limits.values()))
        with pytest.raises(Shed):
            await session.get(url)
        yield_to.set()
        async with await first as response:
            return response.status


async def in_threads(get: Any, sender: AdaptiveSender) -> int:
    first = asyncio.create_task(asyncio.to_thread(get))
    await eventually(lambda: any(one.in_flight for one in sender._limits.values()))
    with pytest.raises(Shed):
        await asyncio.to_thread(get)
    yield_to.set()
    return (await first).status_code


async def by_blocking_httpx(url: str, sender: list[AdaptiveSender]) -> int:
    transport = AdaptiveTransport(**ONE)
    sender.append(transport.sender)
    with httpx.Client(transport=transport) as client:
        return await in_threads(lambda: client.get(url), transport.sender)


async def by_requests(url: str, sender: list[AdaptiveSender]) -> int:
    adapter = AdaptiveAdapter(**ONE)
    sender.append(adapter.sender)
    with requests.Session() as session:
        session.mount("http://", adapter)
        return await in_threads(lambda: session.get(url), adapter.sender)


yield_to = threading.Event()


@pytest.mark.parametrize("by", [by_httpx, by_aiohttp, by_blocking_httpx, by_requests])
@pytest.mark.parametrize(("status", "drops"), [(200, 0), (429, 1), (503, 1)])
async def test_o7_a_client_sends_as_many_at_once_as_the_limit_of_the_host_allows(
    upstream, by, status: int, drops: int
) -> None:
    global yield_to
    yield_to, upstream.status = upstream.go, status
    sender: list[AdaptiveSender] = []
    assert await by(upstream.url, sender) == status
    limit = sender[0].limit_of(upstream.host)
    assert (limit.in_flight, sum(limit.drop_counts), limit.shed_counts[2]) == (0, drops, 1)


async def test_o7_a_refused_connection_counts_as_a_drop_in_every_client() -> None:
    closed = "http://127.0.0.1:1/"
    asynchronous, blocking, adapter, middleware = (
        AsyncAdaptiveTransport(),
        AdaptiveTransport(),
        AdaptiveAdapter(),
        AdaptiveRequests(),
    )
    async with httpx.AsyncClient(transport=asynchronous) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(closed)
    with httpx.Client(transport=blocking) as client, pytest.raises(httpx.ConnectError):
        client.get(closed)
    with requests.Session() as session:
        session.mount("http://", adapter)
        with pytest.raises(requests.ConnectionError):
            session.get(closed)
    async with aiohttp.ClientSession(middlewares=(middleware,)) as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(closed)
    for one in (asynchronous, blocking, adapter, middleware):
        limit = one.sender.limit_of("127.0.0.1:1")
        assert (limit.in_flight, sum(limit.drop_counts)) == (0, 1), one


def test_o7_the_limits_of_hosts_are_bounded_and_idle_ones_make_room(monkeypatch) -> None:
    monkeypatch.setattr(adaptive_sending, "MAX_HOSTS", 2)
    sender = AdaptiveSender()
    busy = sender.limit_of("a")
    with busy.acquire():
        sender.limit_of("b")
        sender.limit_of("c")
        assert sender.limit_of("a") is busy
    with pytest.raises(ConfigError, match="partitions"):
        AdaptiveSender(partitions={"web": 0.5})
