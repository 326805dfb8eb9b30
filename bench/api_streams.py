"""The platform's own live streams at many viewers: the waiting room's and the seat map's, beside a bare writer's.

Each kind has a fresh server, because memory is read from outside. The map moves because somebody holds a seat and gives
it back, again and again; the room tells everybody its document at each heartbeat.
"""

import asyncio
import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvloop

from bench.api_sale import enter
from bench.api_servers import EVENT, platform, put_on_sale
from bench.api_wire import Line, Times
from bench.http_load import server
from bench.room_streams import HEAD, OWN_PART, SPARE_FILES, hold_open, many_files, own_part, show_streams
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.seats.formats.plan_generator import generate

BASE = f"/v1/events/{EVENT}"
ROUNDS = 2  # the cheaper one counts: neighbours of a shared machine slow the other down
SEATS = 5_000
PAUSE_S = 0.3  # longer than the map's tick, so that each change is a broadcast
MOST_MOVES = 2_000
WIDE_OPEN = {"FRONTROW_SERVER_MAX_STREAMS": "100000", "FRONTROW_OVERLOAD_MAX_CONNECTIONS": "200000"}


@contextlib.asynccontextmanager
async def a_moving_map(port: int) -> AsyncIterator[None]:
    """Somebody holds a seat and gives it back while the body runs."""
    line = Line("127.0.0.1", port, Times())
    person = await enter(line)
    line.close()
    seat = generate("stadium", SEATS).seat_ids[0]

    async def ask(*request: Any) -> dict[str, Any]:
        """On a connection of its own: one that rests while thousands of viewers connect would be closed meanwhile."""
        own = Line("127.0.0.1", port, Times())
        try:
            return (await own.ask(*request))[1]
        finally:
            own.close()

    async def moving() -> None:
        for _ in range(MOST_MOVES):
            visit = f"frontrow-pass: {person.visit}\r\n"
            held = await ask("hold", "POST", f"{BASE}/holds", {"seats": [seat]}, visit)
            await asyncio.sleep(PAUSE_S)
            proofs = f"{visit}frontrow-booking: {held['booking_token']}\r\n"
            await ask("release", "DELETE", f"/v1/bookings/{held['booking']}/hold", None, proofs)
            await asyncio.sleep(PAUSE_S)

    task = asyncio.create_task(moving())
    try:
        yield
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        if not isinstance(ended, asyncio.CancelledError):
            raise SystemExit(f"the map stood still: {ended!r}")


async def _seats(pid: int, port: int, count: int) -> dict[str, float]:
    request = f"GET {BASE}/seats/stream HTTP/1.1\r\n".encode() + HEAD + b"\r\n"
    async with a_moving_map(port):
        return await hold_open(pid, port, count, request, b"event: d")


async def _room(pid: int, port: int, count: int) -> dict[str, float]:
    request = f"GET {BASE}/room/stream HTTP/1.1\r\n".encode() + HEAD + b"\r\n"
    return await hold_open(pid, port, count, request)


def platform_streams(count: int) -> dict[str, Any]:
    """Bytes a viewer and CPU a viewer and broadcast, of each kind."""
    with many_files() as most, tempfile.TemporaryDirectory() as folder:
        count = min(count, most - SPARE_FILES)
        found: dict[str, Any] = {"connections": count}
        with server("bench.room_servers", "bare-writer", "-") as (pid, port):
            time.sleep(1.5)  # let it finish starting before its memory is read
            found["bare-writer"] = uvloop.run(hold_open(pid, port, count))
        kinds = (("room", _room, True), ("seats", _seats, True), ("room, no fast path", _room, False))
        for number, (kind, watch, hot) in itertools.product(range(ROUNDS), kinds):
            home = Path(folder) / f"{kind} {number}"
            home.mkdir()
            url = f"sqlite:///{home / 'ledger.sqlite'}"
            migrate(url)
            asyncio.run(put_on_sale(url, generate("stadium", SEATS)))
            with platform(home, "", url, hot=hot, **WIDE_OPEN) as (pid, port):
                time.sleep(1.5)
                told = uvloop.run(watch(pid, port, count))
            if kind not in found or told["cpu_us_each"] < found[kind]["cpu_us_each"]:
                found[kind] = told
        found[OWN_PART] = uvloop.run(own_part())
    found["load"] = os.getloadavg()[0]
    show_streams(found)
    return found
