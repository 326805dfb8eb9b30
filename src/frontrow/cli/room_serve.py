"""The processes of `frontrow room serve`.

One process serves by itself. Several share one listening socket and a Redis store; a supervisor replaces those that
die.
"""

import asyncio
import socket
import sys
import tempfile
from dataclasses import replace

from frontrow.app.console_serving import first_link, served_console
from frontrow.app.room_wiring import open_rooms
from frontrow.app.simulated_visitors import simulate_visitors
from frontrow.core.background_tasks import hear_event_loop, start_task
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.web.observability.logs import set_up_logs
from frontrow.web.server.process_supervisor import Workers
from frontrow.web.server.room_server import listen, serve_rooms


def serve(settings: RoomSettings, simulate: int = 0) -> None:
    """Listen and serve; prints where. `simulate`: so many made-up visitors are in the queue of the first room.

    A simulated room has keys and an audit of its own and keeps nothing: made-up visitors of an earlier run would hold
    their places in the line and in the shop, and nobody would move.
    """
    if not simulate:
        _serve(settings)
        return
    if not settings.embedded or settings.shards:
        raise ConfigError("--simulate is for a room in memory, without --store and --shard", param="simulate")
    with tempfile.TemporaryDirectory(prefix="frontrow-simulated-") as folder:
        print(f"{simulate} made-up visitors; nothing of this room is kept", flush=True)
        _serve(replace(settings, folder=folder, audit="", workers=1), simulate)


def _serve(settings: RoomSettings, simulate: int = 0) -> None:
    settings.config()  # refuses wrong settings before anything is opened
    sock = listen(settings)
    host, port = sock.getsockname()[:2]
    print(f"waiting room of {', '.join(settings.events) or 'no event yet'} on http://{host}:{port}", flush=True)
    if settings.has_console:
        _print_console(settings, host, port)
    set_up_logs()
    if settings.workers == 1:
        run(settings, sock, simulate)
        return
    RoomKeys.load(settings.folder)  # generated once, before several processes need them
    Workers(settings.workers, run_worker, (settings, sock), before_stop=sock.close).watch()


def _print_console(settings: RoomSettings, host: str, port: int) -> None:
    """Say where the console is. Without an owner, a one-time link leads into it."""
    base = settings.public_url.rstrip("/") or f"http://{host}:{port}"
    secret = asyncio.run(first_link(settings))
    if secret is None:
        print(f"console on {base}/console/", flush=True)
    else:
        print("console: open this link once, within a day, to become its owner:", flush=True)
        print(f"{base}/console/begin#{secret}", flush=True)


def run_worker(settings: RoomSettings, sock: socket.socket) -> None:
    """One of several processes."""
    set_up_logs()
    run(settings, sock)


def run(settings: RoomSettings, sock: socket.socket, simulate: int = 0) -> None:
    """Serve on uvloop. A wrong setting or a store that does not answer ends it with one sentence."""
    import uvloop

    try:
        uvloop.run(serve_async(settings, [sock], simulate))
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")


async def serve_async(settings: RoomSettings, sockets: list[socket.socket], simulate: int = 0) -> None:
    """Open the rooms and serve them in this process until told to stop."""
    with hear_event_loop():
        opened = await open_rooms(settings)
        endpoints = opened.endpoints
        visitors = start_task(
            simulate_visitors(endpoints.rooms.room, settings.events[0] if settings.events else "", simulate),
            "simulated visitors",
        )
        try:
            await serve_rooms(endpoints, settings, sockets, served_console(settings, opened))
        finally:
            visitors.cancel()
            await asyncio.gather(visitors, return_exceptions=True)
            if opened.console is not None:
                await opened.console.aclose()
