"""A whole room server that notes when each join arrived, run as `python -m tests.waitingroom.faults.arrivals ORDER`.

Arrival at the server is the moment its process has read the last byte of the request: the fast path calls the endpoint
then and there. All processes of a machine share the monotonic clock. ORDER is JSON: {"fd", "url", "keys"}; on SIGTERM
it prints {"answers": [[arrived_ns, position, answered_ns], …]}.
"""

import json
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from frontrow.cli.room_serve import serve_async
from frontrow.settings.room import RoomSettings
from frontrow.web.endpoints.room.sharded_queue import ShardedEndpoints
from frontrow.web.fastpath.pending_replies import Handler, Routes
from frontrow.web.http.messages import EndpointRequest
from frontrow.web.server import room_server

EVENT = "concert"
WIDE = "1000000000/second"
arrivals: list[tuple[int, Any]] = []
answered_ns: dict[int, int] = {}


def stamped(join: Handler) -> Handler:
    def handle(ask: EndpointRequest) -> Any:
        at_ns = time.monotonic_ns()
        reply = join(ask)
        arrivals.append((at_ns, reply))
        return reply

    return handle


def watched(endpoints: ShardedEndpoints, *, root_event: str = "") -> Routes:
    """The fast path's table with a stamp on join, and a note of when the store had answered."""
    room, table = endpoints.rooms.room, dict(plain_routes(endpoints, root_event=root_event))
    made = room.joins.joined_json

    def joined_json(event: str, answer: Any, person: str) -> bytes:
        answered_ns[answer.position] = time.monotonic_ns()
        return made(event, answer, person)

    room.joins.joined_json = joined_json  # type: ignore[method-assign]
    table[b"POST", b"/join"] = stamped(table[b"POST", b"/join"])
    return table


plain_routes = room_server.hot_routes


def main() -> None:
    order = json.loads(sys.argv[1])
    room_server.hot_routes = watched
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn stops by it, then raises it again for us
    settings = RoomSettings(
        human="none",
        events=(EVENT,),
        store=order["url"],
        folder=order["keys"],
        audit=":memory:",
        per_ip=WIDE,
        per_person=WIDE,
    )
    uvloop.run(serve_async(settings, [socket.socket(fileno=order["fd"])]))
    positions = [(at_ns, json.loads(reply._response.body)["position"]) for at_ns, reply in arrivals]
    answers = {"answers": [(at_ns, place, answered_ns[place]) for at_ns, place in positions]}
    Path(order["out"]).write_text(json.dumps(answers))  # a file: an unbuffered pipe may keep only the first 64 KiB


if __name__ == "__main__":
    main()
