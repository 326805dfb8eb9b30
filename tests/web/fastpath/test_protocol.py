"""The fast path as a protocol: what it answers itself, what it passes on, and that both keep their order."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from frontrow.web.fastpath import protocol
from frontrow.web.fastpath.pending_replies import Reply
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.http.messages import JSON, MAX_BODY_BYTES, EndpointRequest, EndpointResponse
from tests.web.guard.echo_server import Pipe, StandStillLoop, WebSockets, echo_app, get, post
from tests.web.room.served import Line, serving


def hot(ask: EndpointRequest) -> EndpointResponse:
    return EndpointResponse(200, JSON, b"hot %d %b" % (len(ask.body), ask.header(b"x-one") or b"-"))


def later(ask: EndpointRequest) -> "asyncio.Future[Reply]":
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()
    loop.call_later(0.02, lambda: future.done() or future.set_result(EndpointResponse(200, JSON, b"later " + ask.body)))
    return future


def broken(ask: EndpointRequest) -> EndpointResponse:
    raise RuntimeError("a bug")


def broken_later(ask: EndpointRequest) -> "asyncio.Future[Reply]":
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    future.set_exception(RuntimeError("a bug, later"))
    return future


ROUTES = {
    (b"GET", b"/hot"): hot,
    (b"POST", b"/hot"): hot,
    (b"POST", b"/later"): later,
    (b"GET", b"/broken"): broken,
    (b"GET", b"/broken-later"): broken_later,
}


@pytest.fixture(scope="module", params=["compiled", "httptools alone"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    options = {"timeout_keep_alive": 1, "ws": WebSockets}
    with pytest.MonkeyPatch.context() as patch, serving(echo_app, fast_path(ROUTES), **options) as port:
        if request.param != "compiled":  # as it is where there was no compiler
            patch.setattr(protocol, "read_plain", lambda data: None)
        yield port


def test_a_hot_route_is_answered_by_the_fast_path_and_another_by_the_app(port: int) -> None:
    with Line(port) as line:
        line.send(get(b"/hot", b"X-One: 1\r\n"))
        status, headers, body = line.answer()
        assert (status, body) == (200, b"hot 0 1")
        assert headers[b"content-type"] == b"application/json"
        assert headers[b"date"]
        line.send(get(b"/cold", b"X-One: 1\r\n"))
        assert line.answer()[2] == b"cold GET /cold  host,x-one"
        line.send(post(b"/cold", b"abc"))
        assert line.answer()[2] == b"cold POST /cold abc host,content-length"
        line.send(get(b"/hot"))
        assert line.answer()[2] == b"hot 0 -"


@pytest.mark.parametrize(
    "asked",
    [
        get(b"/hot", method=b"HEAD"),
        get(b"/hot?x=1"),
        get(b"/hot", version=b"1.0"),
        get(b"/HOT"),
        get(b"/hot", method=b"PUT"),
        get(b"/hot", b"Connection: upgrade\r\nUpgrade: websocket2\r\n"),
    ],
)
def test_an_unusual_request_is_passed_on(port: int, asked: bytes) -> None:
    with Line(port) as line:
        line.send(asked)
        head = line.until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"application/json" not in head


def test_no_connection_is_given_away_to_another_protocol(port: int, caplog: pytest.LogCaptureFixture) -> None:
    """A request to upgrade is an ordinary one, and what follows it is read too. Nothing is logged about it."""
    asked = get(b"/hot", b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n")
    with Line(port) as line, caplog.at_level(logging.INFO, "uvicorn.error"):
        line.send(asked + get(b"/hot") + asked)
        bodies = [line.answer()[2] for _ in range(3)]
        line.send(get(b"/hot"))
        bodies.append(line.answer()[2])
    told = b"cold GET /hot  host,connection,upgrade,sec-websocket-version"
    cold = b"cold GET /hot  host"  # behind another answer
    assert [bodies[0], bodies[2], bodies[3]] == [told, told, b"hot 0 -"]
    assert bodies[1] in (cold, b"hot 0 -")
    assert caplog.messages == []


def test_expect_continue_is_honoured_by_uvicorn(port: int) -> None:
    with Line(port) as line:
        line.send(b"POST /hot HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert line.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        line.send(b"ok")
        assert line.answer()[2].startswith(b"cold POST /hot ok")


def test_a_request_may_come_byte_by_byte_and_its_body_in_chunks(port: int) -> None:
    with Line(port) as line:
        whole = b"POST /hot HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        line.send(*[whole[i : i + 1] for i in range(len(whole))])
        assert line.answer()[2] == b"hot 5 -"


def test_pipelined_answers_keep_their_order_across_fast_path_and_framework(port: int) -> None:
    with Line(port) as line:
        line.send(post(b"/later", b"1") + get(b"/hot") + get(b"/cold") + post(b"/later", b"2") + get(b"/hot"))
        bodies = [line.answer()[2] for _ in range(5)]
        assert bodies[0] == b"later 1"
        assert bodies[1].startswith((b"hot 0", b"cold GET /hot"))
        assert bodies[2].startswith(b"cold GET /cold")
        assert bodies[3].startswith((b"later 2", b"cold POST /later 2"))
        assert bodies[4].startswith((b"hot 0", b"cold GET /hot"))
        line.send(get(b"/hot"))
        assert line.answer()[2] == b"hot 0 -"


def test_connection_close_is_obeyed_and_said(port: int) -> None:
    for asked in (
        get(b"/hot", b"Connection: close\r\n"),
        post(b"/later", b"x").replace(b"Host: x", b"Connection: close"),
    ):
        with Line(port) as line:
            line.send(asked)
            assert line.answer()[1][b"connection"] == b"close"
            assert line.at_end()


def test_an_idle_connection_is_closed(port: int) -> None:
    with Line(port) as line:
        line.send(get(b"/hot"))
        line.answer()
        assert line.at_end()  # after timeout_keep_alive, by the server


def test_a_bug_in_a_handler_is_a_500_and_the_connection_lives(port: int) -> None:
    with Line(port) as line:
        for path in (b"/broken", b"/broken-later"):
            line.send(get(path))
            assert line.answer()[0] == 500
        line.send(get(b"/hot"))
        assert line.answer()[0] == 200


def test_rubbish_is_a_400_and_a_body_over_the_bound_is_cut_there(port: int) -> None:
    with Line(port) as line:
        line.send(b"\x16\x03\x01\x00rubbish\r\n\r\n")
        assert line.answer()[0] == 400
        assert line.at_end()
    with Line(port) as line:
        line.send(post(b"/hot", b"x" * (MAX_BODY_BYTES + 1)))
        status, _, body = line.answer()
        assert status == 200
        assert int(body.split()[1]) <= MAX_BODY_BYTES + 1


def test_endless_headers_are_cut_off(port: int) -> None:
    with Line(port) as line:
        line.send(b"GET /hot HTTP/1.1\r\n")
        with pytest.raises(OSError):  # noqa: PT012  # reset or broken pipe, whichever comes first
            for _ in range(64):
                line.send(b"X-A: " + b"a" * 65536 + b"\r\n")
            while not line.at_end():
                line.buffer = b""
            raise ConnectionResetError


def test_a_reader_that_leaves_before_its_answer_harms_nobody(port: int) -> None:
    for _ in range(50):
        with Line(port) as line:
            line.send(post(b"/later", b"gone"))
    with Line(port) as line:
        line.send(post(b"/later", b"here"))
        assert line.answer()[2] == b"later here"


@pytest.mark.parametrize("sent_before", [b"", get(b"/hot")[:5]], ids=["idle", "a request under way"])
async def test_what_came_while_the_process_stood_still_is_answered(sent_before: bytes) -> None:
    """F5: a server that was frozen closed every connection whose time was over, and the requests in them were lost."""
    loop, pipe = StandStillLoop(), Pipe()
    config = Config(echo_app, timeout_keep_alive=5, log_config=None)
    config.load()
    connection = fast_path(ROUTES)(config, ServerState(), {}, loop)  # type: ignore[arg-type]
    connection.connection_made(pipe)
    connection.data_received(get(b"/hot"))
    connection.data_received(sent_before)
    loop.stand_still(60.0)
    assert not pipe.closed
    connection.data_received(get(b"/hot")[len(sent_before) :])
    assert pipe.written.count(b"HTTP/1.1 200") == 2
    connection.data_received(sent_before)
    for _ in range(100):
        loop.stand_still(1.0)
    assert pipe.closed, "nobody keeps a connection by saying nothing"
