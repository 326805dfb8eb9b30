"""A server behind the gate whose answers cost a known amount of CPU: `python -m tests.web.server.overload_server`.

Prints its port. Fast path and framework do the same work; /metrics of it is a JSON line of the gate's counts.
"""

import json
import socket
import time
from typing import Any

import uvicorn

from frontrow.settings.overload import OverloadSettings
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.guard.connection_guard import GuardRules
from frontrow.web.guard.overload import OverloadGate, Rank
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.guard.route_metrics import Traffic
from frontrow.web.http.messages import EndpointRequest, EndpointResponse
from frontrow.web.server.overload_middleware import GuardedApp

WORK_S = 0.0004
EVENT = "/v1/events/evt_a"
HOT = {
    "join": ("POST", f"{EVENT}/room/join"),
    "map": ("GET", f"{EVENT}/seats.bin"),
    "hold": ("POST", f"{EVENT}/holds"),
}
COLD = {"browse": ("GET", "/v1/events"), "pay": ("POST", "/v1/bookings/bkg_a/pay")}


def work() -> None:
    end_s = time.thread_time() + WORK_S
    while time.thread_time() < end_s:
        pass


def answer(ask: EndpointRequest) -> EndpointResponse:
    work()
    return EndpointResponse(200, b"content-type: text/plain\r\n", b"done")


def app_of(gate: OverloadGate) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": message["type"] + ".complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b"done"
        if scope["path"] == "/metrics":
            about = {"pressure": gate.pressure, "turned_away": gate.turned_away, "cpu_s": time.process_time()}
            names = [rank.name.lower() for rank in Rank]
            shed, admitted = dict(zip(names, gate.shed, strict=True)), dict(zip(names, gate.admitted, strict=True))
            body = json.dumps(about | {"shed": shed, "admitted": admitted}).encode()
        else:
            work()
        head = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    return app


def main() -> None:
    gate = OverloadGate(OverloadSettings(max_lag_ms=20, retry_after_s=1))
    watch = Watch(gate, Traffic(), lambda peer: False)
    routes = {(method.encode(), path.encode()): answer for method, path in HOT.values()}
    sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(sock.getsockname()[1], flush=True)
    http: Any = fast_path(routes, GuardRules(watch=watch))
    app: Any = GuardedApp(app_of(gate), watch)
    config = uvicorn.Config(app, http=http, loop="uvloop", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[sock])


if __name__ == "__main__":
    main()
