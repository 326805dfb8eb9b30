"""A guarded server inside the test's loop, asked over raw sockets."""

import asyncio
import socket
from typing import Any

import uvicorn

from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.guard.connection_guard import GuardRules
from frontrow.web.guard.overload import OverloadGate
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.guard.route_metrics import Traffic
from frontrow.web.server.overload_middleware import GuardedApp
from tests.support.eventually import eventually


async def running(gate: OverloadGate, routes: Any, app: Any) -> tuple[uvicorn.Server, "asyncio.Task[None]", int, Watch]:
    """A guarded server inside this loop."""
    watch = Watch(gate, Traffic(), lambda peer: False)
    sock = socket.create_server(("127.0.0.1", 0))
    http: Any = fast_path(routes, GuardRules(watch=watch))
    config = uvicorn.Config(GuardedApp(app, watch), http=http, log_config=None, access_log=False)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    await eventually(lambda: server.started)
    return server, task, sock.getsockname()[1], watch


async def answer_of(port: int, request: bytes) -> tuple[bytes, bytes]:
    """(head, rest) of one answer, read to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.replace(b"host: a\r\n", b"host: a\r\nconnection: close\r\n"))
    async with asyncio.timeout(60):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return head, body
