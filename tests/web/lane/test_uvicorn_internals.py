"""Canary: the parts of uvicorn that the hot lane relies on and that are not its public API.

`frontrow.web.lane.protocol` replaces some of uvicorn's methods and calls others. pyproject.toml therefore allows only
the minor series that the suite was run with. To allow the next one: raise the cap, run this test, then read the changes
of `uvicorn/protocols/http/httptools_impl.py` and `uvicorn/server.py` against the names below.
"""

import asyncio
import inspect
import tomllib
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server, ServerState

# uvicorn's methods that the lane replaces, with their parameters
REPLACED = {
    "connection_made": ["transport"],
    "connection_lost": ["exc"],
    "data_received": ["data"],
    "on_message_begin": [],
    "on_header": ["name", "value"],
    "on_headers_complete": [],
    "on_body": ["body"],
    "on_message_complete": [],
    "on_response_complete": [],
    "resume_writing": [],
    "shutdown": [],
    "timeout_keep_alive_handler": [],
    "_should_upgrade": [],
}
# uvicorn's methods that the lane calls
CALLED = {
    "send_400_response": ["msg"],
    "_unset_keepalive_if_required": [],
    "_start_asgi_task": ["cycle", "app"],
}
# attributes of a connection that the lane reads or sets
ATTRIBUTES = (
    "client",
    "connections",
    "cycle",
    "flow",
    "loop",
    "parser",
    "pipeline",
    "scope",
    "server_state",
    "timeout_keep_alive",
    "timeout_keep_alive_task",
    "transport",
)
# what uvicorn reads of a cycle, so `PendingReply` must have it
CYCLE = ("disconnected", "keep_alive", "message_event", "response_complete")


def parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)[1:]  # type: ignore[arg-type]


def test_uvicorn_is_of_the_series_that_pyproject_allows() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    (wanted,) = [one for one in project["optional-dependencies"]["room"] if one.startswith("uvicorn")]
    major, minor = uvicorn.__version__.split(".")[:2]
    assert wanted == f"uvicorn>={major}.{minor},<{major}.{int(minor) + 1}"


@pytest.mark.parametrize(("name", "wanted"), [*REPLACED.items(), *CALLED.items()])
def test_the_methods_are_there_with_the_same_parameters(name: str, wanted: list[str]) -> None:
    assert parameters(getattr(HttpToolsProtocol, name)) == wanted


async def test_the_attributes_of_a_connection_are_there() -> None:
    config = uvicorn.Config(lambda scope: None, log_config=None)  # type: ignore[arg-type, return-value]
    connection = HttpToolsProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    assert [name for name in ATTRIBUTES if not hasattr(connection, name)] == []
    connection.on_message_begin()
    assert connection.url == b""


def test_flow_control_pauses_and_resumes_as_we_replace_it() -> None:
    for name in ("pause_reading", "resume_reading", "pause_writing", "resume_writing"):
        assert parameters(getattr(FlowControl, name)) == []
    source = inspect.getsource(FlowControl.__init__)
    assert [name for name in ("_transport", "read_paused", "write_paused") if f"self.{name} =" not in source] == []


def test_a_cycle_has_what_stands_in_for_it() -> None:
    source = inspect.getsource(RequestResponseCycle.__init__)
    assert [name for name in CYCLE if f"self.{name} =" not in source] == []
    assert "self.chunked_encoding: bool | None" in source, "read before a stream is taken over from the app"


def test_the_server_keeps_its_headers_counts_and_signals_where_we_look() -> None:
    state = ServerState()
    assert (state.total_requests, state.default_headers, state.connections) == (0, [], set())
    assert STATUS_LINE[200] == b"HTTP/1.1 200 OK\r\n"
    server = Server(uvicorn.Config(lambda scope: None, log_config=None))  # type: ignore[arg-type, return-value]
    assert server._captured_signals == []
    assert parameters(Server.handle_exit) == ["sig", "frame"]
