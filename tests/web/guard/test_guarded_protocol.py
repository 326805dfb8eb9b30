"""The guard without the fast path, around uvicorn's own protocol: what passes, what is refused, and how it ends."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.config import Config
from uvicorn.server import ServerState

from frontrow.core.errors import ConfigError
from frontrow.web.guard.connection_guard import GuardRules
from frontrow.web.guard.guarded_protocol import GuardedRequests, guarded
from tests.web.guard.echo_server import Pipe, StandStillLoop, WebSockets, echo_app, get, post
from tests.web.room.served import Line, serving

APP: Any = GuardedRequests(echo_app)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(APP, guarded(), ws="none", timeout_keep_alive=1) as port:
        yield port


def test_requests_of_every_kind_reach_the_app(port: int) -> None:
    with Line(port) as line:
        line.send(get(b"/a", b"X-One: 1\r\n"))
        status, headers, body = line.answer()
        assert (status, body) == (200, b"cold GET /a  host,x-one")
        assert headers[b"date"]
        line.send(post(b"/b", b"abc"))
        assert line.answer()[2] == b"cold POST /b abc host,content-length"
        whole = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        line.send(*[whole[at : at + 1] for at in range(len(whole))])
        assert line.answer()[2] == b"cold POST /c abcde host,transfer-encoding"
        line.send(b"POST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert line.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        line.send(b"ok")
        assert line.answer()[2].startswith(b"cold POST /d ok")


def test_pipelined_answers_keep_their_order(port: int) -> None:
    paths = [b"/%d" % number for number in range(300)]
    with Line(port) as line:
        line.send(b"".join(map(get, paths)))
        assert [line.answer()[2].split()[2] for _ in paths] == paths


def test_a_large_body_passes_in_pieces(port: int) -> None:
    body = bytes(range(256)) * 2_000
    with Line(port) as line:
        line.send(post(b"/large", body))
        assert body in line.answer()[2]


def test_a_request_to_upgrade_is_an_ordinary_one_and_what_follows_is_read_too(port: int) -> None:
    asked = get(b"/up", b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n")
    with Line(port) as line:
        line.send(asked + get(b"/next") + asked)
        assert [line.answer()[2].split()[2] for _ in range(3)] == [b"/up", b"/next", b"/up"]


async def test_a_server_that_could_give_connections_away_is_refused() -> None:
    config = Config(APP, ws=WebSockets, log_config=None)
    with pytest.raises(ConfigError, match="ws='none'"):
        guarded()(config, ServerState(), {})


@pytest.mark.parametrize("rubbish", [b"\x16\x03\x01\x00rubbish\r\n\r\n", b"GET /\r\n\r\n", get(b"/", version=b"3.1")])
def test_rubbish_is_a_400(port: int, rubbish: bytes) -> None:
    with Line(port) as line:
        line.send(rubbish)
        assert line.answer()[0] == 400
        assert line.at_end()


def test_connection_close_is_obeyed_and_an_idle_connection_is_closed(port: int) -> None:
    with Line(port) as line:
        line.send(get(b"/a", b"Connection: close\r\n"))
        assert line.answer()[1][b"connection"] == b"close"
        assert line.at_end()
    with Line(port) as line:
        line.send(get(b"/a"))
        line.answer()
        assert line.at_end()  # after timeout_keep_alive, by the guard


def test_a_stopping_server_still_answers_what_is_on_its_way() -> None:
    """The connection was idle when the server was told to stop; its next request is answered and closes it."""
    told = threading.Event()

    class Told(guarded(GuardRules(linger_s=20.0))):  # type: ignore[misc]
        def shutdown(self) -> None:
            super().shutdown()
            told.set()

    running = list[uvicorn.Server]()
    with stopping(Told, running) as port, Line(port) as line:
        line.send(get(b"/before"))
        assert line.answer()[0] == 200
        running[0].should_exit = True
        assert told.wait(20)
        line.send(get(b"/after"))
        status, headers, _ = line.answer()
        assert (status, headers[b"connection"]) == (200, b"close")
        assert line.at_end()


@contextlib.contextmanager
def stopping(http: Any, running: list[uvicorn.Server]) -> Iterator[int]:
    """As `serving`, with the server itself in `running`."""
    whole = uvicorn.Server.startup

    async def startup(self: uvicorn.Server, sockets: Any = None) -> None:
        running.append(self)
        await whole(self, sockets)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.Server, "startup", startup)
        with serving(APP, http, ws="none", timeout_graceful_shutdown=20) as port:
            yield port


async def test_what_came_while_the_process_stood_still_is_answered() -> None:
    """F5: a server that was frozen closed every connection whose time was over, and the requests in them were lost."""
    loop, pipe = StandStillLoop(), Pipe()
    config = Config(APP, timeout_keep_alive=5, log_config=None, ws="none")
    config.load()
    connection = guarded()(config, ServerState(), {}, loop)  # type: ignore[arg-type]
    connection.connection_made(pipe)
    connection.data_received(get(b"/a"))
    await written(pipe, 1)
    loop.stand_still(60.0)
    assert not pipe.closed
    for number in range(2, 12):
        connection.data_received(get(b"/b"))
        await written(pipe, number)
    assert len([one for _, one in loop.due if not one.cancelled()]) <= 3, "timers do not accumulate with requests"
    for _ in range(100):
        loop.stand_still(1.0)
    assert pipe.closed, "nobody keeps a connection by saying nothing"


async def written(pipe: Pipe, answers: int) -> None:
    """Until so many answers were written, and whoever wrote them has finished."""
    for _ in range(10_000):
        if pipe.written.count(b"cold GET") == answers:
            break
        await asyncio.sleep(0)
    await asyncio.sleep(0)
