"""Requests that wait: httpx, requests and aiohttp against a real server that answers 429 as it likes."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import httpx
import pytest
import requests

from frontrow.core.errors import ConfigError
from frontrow.limits import Limiter, Quota, Throttled
from frontrow.limits.outgoing.aiohttp_middleware import PacedRequests
from frontrow.limits.outgoing.httpx_transport import AsyncPacedTransport, PacedTransport
from frontrow.limits.outgoing.pacing import Exchange, Pacer
from frontrow.limits.outgoing.requests_adapter import PacedAdapter
from frontrow.limits.outgoing.retry_headers import MAX_PAUSE_S, read_pause_s
from frontrow.testing.clock import ManualClock

NOW_S = 1_700_000_000.0


class Server:
    """Answers with what it was told to, one answer per request, and then with 200. Remembers the bodies it got."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.bodies.append(read_body(self))
                status, headers = server.answers.pop(0) if server.answers else (200, {})
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "2"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def read_body(request: BaseHTTPRequestHandler) -> bytes:
    if "chunked" not in request.headers.get("transfer-encoding", ""):
        return request.rfile.read(int(request.headers.get("content-length", 0)))
    body = b""
    while size := int(request.rfile.readline(), 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body


@pytest.fixture(scope="module")
def module_server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def server(module_server: Server) -> Server:
    module_server.answers, module_server.bodies = [], []
    return module_server


class Caller:
    """Sends POST requests through one of the four clients, all in one session."""

    def __init__(self, kind: str, limits: Any, **options: Any) -> None:
        self.kind, self.limits, self.options = kind, limits, options

    def post(self, url: str, *bodies: bytes | None) -> list[int]:
        """The status of each response. `None` as a body is a stream, which can be read once."""
        if self.kind == "httpx":
            with httpx.Client(transport=PacedTransport(self.limits, **self.options)) as client:
                return [client.post(url, content=body or iter([b"stream"])).status_code for body in bodies]
        if self.kind == "requests":
            with requests.Session() as session:
                session.mount("http://", PacedAdapter(self.limits, **self.options))
                return [session.post(url, data=body or iter([b"stream"])).status_code for body in bodies]
        return asyncio.run(self._apost(url, bodies))

    async def _apost(self, url: str, bodies: tuple[bytes | None, ...]) -> list[int]:
        if self.kind == "httpx-async":
            async with httpx.AsyncClient(transport=AsyncPacedTransport(self.limits, **self.options)) as client:
                return [(await client.post(url, content=body or stream())).status_code for body in bodies]
        pace = PacedRequests(self.limits, **self.options)
        statuses = []
        async with contextlib.aclosing(pace), aiohttp.ClientSession(middlewares=(pace,)) as session:
            for body in bodies:
                async with session.post(url, data=body or stream()) as response:
                    statuses.append(response.status)
        return statuses


async def stream() -> AsyncIterator[bytes]:
    yield b"stream"


@pytest.fixture(params=["httpx", "httpx-async", "requests", "aiohttp"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_each_request_waits_for_its_turn(kind: str, server: Server, clock: ManualClock) -> None:
    started_us = clock()
    caller = Caller(kind, Quota.parse("2/minute", algorithm="token_bucket"), clock=clock)
    assert caller.post(server.url, *[b"x"] * 4) == [200] * 4
    assert clock() - started_us == 60_000_000, "two at once, then one every 30 s"


def test_a_429_is_obeyed_and_the_request_sent_again(kind: str, server: Server, clock: ManualClock) -> None:
    server.answers = [(429, {"Retry-After": "7"}), (429, {"RateLimit": '"burst";r=0;t=5'})]
    started_us = clock()
    assert Caller(kind, "1000/second", clock=clock).post(server.url, b"order") == [200]
    assert clock() - started_us == 12_000_000
    assert server.bodies == [b"order"] * 3


def test_a_stream_is_not_sent_twice(kind: str, server: Server, clock: ManualClock) -> None:
    server.answers = [(429, {"Retry-After": "7"})]
    assert Caller(kind, "1000/second", clock=clock).post(server.url, None) == [429]
    assert server.bodies == [b"stream"]


def test_waiting_has_bounds(kind: str, server: Server, clock: ManualClock) -> None:
    """Two retries; a pause that is too long goes to the caller, and the next request does not even try."""
    server.answers = [(429, {"Retry-After": "1"})] * 3
    assert Caller(kind, "1000/second", clock=clock).post(server.url, b"x") == [429]
    assert len(server.bodies) == 3
    server.answers, server.bodies = [(429, {"Retry-After": "3600"})], []
    caller = Caller(kind, "1000/second", clock=clock, timeout_s=10)
    with pytest.raises(Throttled, match=r"asked for a pause of 60\.000 s"):
        caller.post(server.url, b"x", b"y")
    assert server.bodies == [b"x"]


def test_a_turn_that_does_not_come_in_time_is_throttled(kind: str, server: Server, clock: ManualClock) -> None:
    caller = Caller(kind, "1/hour", clock=clock, timeout_s=60)
    with pytest.raises(Throttled):
        caller.post(server.url, b"x", b"y")
    assert server.bodies == [b"x"]


def test_a_429_without_a_time_waits_a_second_then_two(server: Server, clock: ManualClock) -> None:
    server.answers = [(429, {})] * 2
    started_us = clock()
    assert Caller("httpx", "1000/second", clock=clock).post(server.url, b"x") == [200]
    assert clock() - started_us == 3_000_000


class HookedClock(ManualClock):
    """A clock on which a test decides what happens while a caller sleeps."""

    def __init__(self, while_asleep: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.while_asleep = while_asleep

    def sleep(self, seconds: float) -> None:
        self.while_asleep()
        super().sleep(seconds)


class SharedClock(ManualClock):
    """A clock on which several tasks sleep, once `started` is set. It moves to whoever wakes first."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeper, self.started = asyncio.Event(), asyncio.Event()
        self._wakes_us: list[int] = []

    async def sleep(self, seconds: float) -> None:  # type: ignore[override]
        wake_us = self.now_us + round(seconds * 1_000_000)
        self._wakes_us.append(wake_us)
        self.sleeper.set()
        await self.started.wait()
        quiet = 0
        while quiet < 20:  # turns of the loop in which nobody wakes earlier
            quiet = 0 if min(self._wakes_us) < wake_us else quiet + 1
            await asyncio.sleep(0)
        self._wakes_us.remove(wake_us)
        self.now_us = max(self.now_us, wake_us)


def answers(status: int, **headers: str) -> Any:
    return httpx.Response(status, headers={name.replace("_", "-"): value for name, value in headers.items()})


def exchange(send: Callable[[], Any]) -> Exchange[httpx.Response]:
    return Exchange(
        "partner",
        send=send,
        status=lambda response: response.status_code,
        headers=lambda response: response.headers,
        can_repeat=lambda: True,
        discard=lambda response: None,
    )


async def test_requests_in_line_obey_a_pause_that_begins_meanwhile() -> None:
    """Eight wait for their turn when the first is told to pause. None leaves before the pause ends, nor all at once."""
    clock = SharedClock()
    pacer = Pacer(Quota.parse("10/second burst 1"), clock=clock)
    sent_us: list[int] = []
    told_us = 0

    async def first() -> httpx.Response:
        nonlocal told_us
        if told_us:
            return await other()
        await clock.sleeper.wait()  # until the head of the line waits
        clock.started.set()
        told_us = clock()
        return answers(429, retry_after="3")

    async def other() -> httpx.Response:
        sent_us.append(clock())
        return answers(200)

    sending = [asyncio.create_task(pacer.asend(exchange(send))) for send in (first, *[other] * 8)]
    assert {each.status_code for each in await asyncio.gather(*sending)} == {200}
    pause_ends_us = told_us + 3_000_000
    assert len(sent_us) == 9
    assert min(sent_us) >= pause_ends_us, "sent while the server asked for a pause"
    assert max(sent_us) >= pause_ends_us + 700_000, "nine at ten per second take eight steps of 0.1 s"


def test_a_blocking_request_in_line_obeys_a_pause_that_begins_meanwhile() -> None:
    clock = HookedClock()
    pacer = Pacer(Quota.parse("1/second burst 1"), clock=clock)
    told_us = 0
    sent_us: list[int] = []

    def paused() -> httpx.Response:
        nonlocal told_us
        told_us = clock()
        return answers(429, retry_after="3")

    def served() -> httpx.Response:
        sent_us.append(clock())
        return answers(200)

    def tell_to_pause() -> None:
        """While the second request sleeps in line, another one gets its answer."""
        clock.while_asleep = lambda: None
        once = Pacer(Limiter("100/second", clock=clock), retries=0, clock=clock)
        once._paused_until_us = pacer._paused_until_us
        assert once.send(exchange(paused)).status_code == 429

    assert pacer.send(exchange(served)).status_code == 200
    clock.while_asleep = tell_to_pause
    assert pacer.send(exchange(served)).status_code == 200
    assert sent_us[1] - told_us >= 3_000_000


def test_a_shorter_pause_does_not_end_a_longer_one(clock: ManualClock) -> None:
    """Two requests were on their way; the second answer asks for less."""
    pacer = Pacer("1000/second", retries=0, clock=clock)

    def paused_twice() -> httpx.Response:
        assert pacer.send(exchange(lambda: answers(429, retry_after="9"))).status_code == 429
        return answers(429, retry_after="1")

    assert pacer.send(exchange(paused_twice)).status_code == 429
    started_us = clock()
    assert pacer.send(exchange(lambda: answers(200))).status_code == 200
    assert clock() - started_us == 9_000_000


def test_programs_on_several_machines_share_one_pace(redis_url: str, server: Server) -> None:
    """Two clients with limiters on one Redis; the key is the caller's own."""
    options = {"key": lambda request: "partner", "timeout_s": 0, "store": redis_url, "deadline_s": 10.0}
    assert Caller("requests", "2/day", **options).post(server.url, b"x") == [200]
    assert Caller("httpx", "2/day", **options).post(server.url, b"x") == [200]
    with pytest.raises(Throttled):
        Caller("aiohttp", "2/day", **options).post(server.url, b"x")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "999999999999"}, MAX_PAUSE_S),
        ({"retry-after": "soon", "ratelimit": '"burst";r=0;t=30, "daily";r=0;t=600'}, 600.0),
        ({"ratelimit": "limit=100, remaining=0, reset=40"}, 40.0),
        ({"ratelimit-reset": "20"}, 20.0),
        ({"x-ratelimit-reset": "1700000015"}, 15.0),
        ({"x-ratelimit-reset": "15"}, 15.0),
        ({"retry-after": "3", "x-ratelimit-reset": "15"}, 3.0),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], expected: float | None) -> None:
    assert read_pause_s(headers, NOW_S) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout_s": -1}, "timeout_s must be from 0"),
        ({"max_pause_s": "long"}, "max_pause_s must be from 0"),
        ({"retries": 1000}, "retries must be a whole number from 0 to 100"),
        ({"store": "memory://"}, "a ready Limiter takes no further options"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Pacer(Limiter("1/second"), **options)
