"""The names of uvicorn that the fast path uses and that are not its public API. No other module may use them.

pyproject.toml allows the minor series of uvicorn that the suite was run with, for the fast path alone. To allow the
next one: raise the cap, run `tests/web/fastpath/test_uvicorn_names.py`, then read the changes of
`uvicorn/protocols/http/httptools_impl.py` and `flow_control.py` against the names below. A server with another uvicorn
runs without the fast path (`hot_lane = false`): the guard needs only what uvicorn asks of every protocol class
(`web/guard/guarded_protocol.py`).
"""

import inspect
from collections.abc import Iterator
from typing import Final

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from frontrow.core.errors import ConfigError

# methods of `HttpToolsProtocol` that `FastPathProtocol` overrides, with their parameters
OVERRIDDEN: Final = {
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
# methods of `HttpToolsProtocol` that it calls
CALLED: Final = {
    "send_400_response": ["msg"],
    "_unset_keepalive_if_required": [],
    "_start_asgi_task": ["cycle", "app"],
}
# attributes of `HttpToolsProtocol` that it reads or sets
CONNECTION: Final = (
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
# attributes of `RequestResponseCycle` that it reads or sets; `PendingReply` has the first four, which uvicorn reads
CYCLE: Final = (
    "disconnected",
    "keep_alive",
    "message_event",
    "response_complete",
    "response_started",
    "chunked_encoding",
    "scope",
)
# methods of `FlowControl` that `ConnectionFlow` overrides, and its attributes
FLOW_METHODS: Final = ("pause_reading", "resume_reading", "pause_writing", "resume_writing")
FLOW: Final = ("read_paused", "write_paused")
# attributes of `ServerState`, which every protocol class shares with the server; the guard uses the last two as well
STATE: Final = ("total_requests", "connections", "default_headers")


def changed_names() -> list[str]:
    """What this uvicorn has no longer, or has with other parameters."""
    return list(_changes())


def _changes() -> Iterator[str]:
    for name, wanted in (OVERRIDDEN | CALLED).items():
        if _parameters(getattr(HttpToolsProtocol, name, None)) != wanted:
            yield f"HttpToolsProtocol.{name}({', '.join(wanted)})"
    for name in FLOW_METHODS:
        if _parameters(getattr(FlowControl, name, None)) != []:
            yield f"FlowControl.{name}()"
    yield from (f"ServerState.{name}" for name in STATE if not hasattr(ServerState(), name))
    for kind, names in ((HttpToolsProtocol, CONNECTION), (RequestResponseCycle, CYCLE), (FlowControl, FLOW)):
        made = set(kind.__init__.__code__.co_names)  # the names that it sets, among others
        yield from (f"{kind.__name__}.{name}" for name in names if name not in made)


def _parameters(method: object) -> list[str] | None:
    return list(inspect.signature(method).parameters)[1:] if callable(method) else None


def check_names() -> None:
    """Refuse to start the fast path on a uvicorn that it does not know."""
    if changed := changed_names():
        message = (
            f"the fast path does not know uvicorn {uvicorn.__version__}, which has no {', '.join(changed)}; "
            "set server.hot_lane and room.hot_lane to false, or install the uvicorn that frontrow[room] asks for"
        )
        raise ConfigError(message, param="hot_lane")
