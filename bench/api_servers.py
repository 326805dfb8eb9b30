"""The servers of the API's benchmark: the platform (fast path on or off) on Redis and PostgreSQL, and a textbook.

`python -m bench.api_servers fastapi POSTGRES_URL` is the textbook: FastAPI, SELECT … FOR UPDATE, one transaction each.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import options
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.model.venues import Plan, Venue
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.shared.money import Money

EVENT = "evt_bench"
DAY_US = 86_400 * US_PER_S
WIDE = "100000000/second"
SECRET = "b" * 20 + "0123456789abcdef" * 2


async def put_on_sale(url: str, plan: Plan, event_id: str = EVENT, **changes: Any) -> None:
    body, now_us = plan_bytes(plan), SystemClock()()
    ledger = await open_ledger(url)
    try:
        await ledger.catalogue.put_plan(digest(body), plan, body.decode(), now_us)
        await ledger.catalogue.put_venue(
            Venue("ven_bench", "Stadium", digest(body), "Vienna", "AT", "Europe/Vienna"), now_us
        )
        tiers = tuple(PriceTier(key, Money(5_000, "EUR")) for key in plan.tiers)
        event = Event(
            event_id,
            "Aurora",
            "ven_bench",
            digest(body),
            "EUR",
            now_us + 60 * DAY_US,
            now_us - US_PER_S,
            now_us + 59 * DAY_US,
            tiers,
            EventStatus.ON_SALE,
            lonely_rule_until_percent=0,
            **changes,
        )
        await ledger.catalogue.put_event(event, now_us)
    finally:
        await ledger.aclose()


@contextlib.contextmanager
def platform(
    folder: Path,
    redis_url: str,
    postgres_url: str,
    *,
    hot: bool = True,
    jobs: bool = True,
    event: str = EVENT,
    max_lag_ms: int = 10_000,
    **settings: str,
) -> Iterator[tuple[int, int]]:
    """`frontrow serve` as people run it, with limits that are checked and never reached; (pid, port).

    `settings` are more FRONTROW_… variables.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    env.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # an installed package has its bytecode; without it each start compiles all
    env |= {
        "FRONTROW_SECRET_KEY": SECRET,
        "FRONTROW_REDIS_URL": redis_url,
        "FRONTROW_LEDGER_URL": postgres_url,
        "FRONTROW_SERVER_PER_IP": WIDE,
        "FRONTROW_SERVER_PER_PERSON": WIDE,
        "FRONTROW_SERVER_HOT_LANE": str(hot).lower(),
        "FRONTROW_SERVER_JOBS_INSIDE": str(jobs).lower(),
        "FRONTROW_ROOM_CAPACITY": "1000000",
        "FRONTROW_ROOM_HUMAN": "none",  # the crowd are programs
        "FRONTROW_ROOM_WINDOW_SIZE": "20000",
        "FRONTROW_ROOM_INTERVAL_S": "0.1",
        "FRONTROW_ROOM_RATE_PER_S": "200000",
        "FRONTROW_OVERLOAD_MAX_LAG_MS": str(max_lag_ms),
        **settings,
    }
    command = [sys.executable, "-m", "frontrow.cli.main", "serve", "--demo", "--port", "0", "--folder", str(folder)]
    with (folder / f"server-{hot}.log").open("ab") as errors:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "http://" not in line:
            raise SystemExit((folder / f"server-{hot}.log").read_text()[-2000:])
        port = int(line.rsplit(":", 1)[1])
        _wait(f"http://127.0.0.1:{port}/v1/events/{event}/seats.bin", process)
        yield process.pid, port
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _wait(url: str, process: "subprocess.Popen[str]") -> None:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise SystemExit("the platform did not open the sale in time")


def fastapi_app(url: str) -> Any:
    """Holding and paying as most people would write them."""
    import asyncpg
    from fastapi import FastAPI, HTTPException
    from pydantic import BaseModel

    class Wish(BaseModel):
        fan: str
        seats: list[str]

    pools: list[Any] = []

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> Any:
        pools.append(await asyncpg.create_pool(url, min_size=16, max_size=16))
        yield
        await pools[0].close()

    app = FastAPI(lifespan=life)

    @app.get("/hello")
    async def hello() -> dict[str, str]:
        return {"hello": "world"}

    @app.post("/holds", status_code=201)
    async def hold(wish: Wish) -> dict[str, Any]:
        async with pools[0].acquire() as connection, connection.transaction():
            rows = await connection.fetch(
                "SELECT id, state FROM textbook_seats WHERE id = ANY($1) ORDER BY id FOR UPDATE", wish.seats
            )
            if len(rows) != len(wish.seats) or any(row["state"] != "free" for row in rows):
                raise HTTPException(409, "taken")
            booking = await connection.fetchval(
                "INSERT INTO textbook_bookings (fan, state) VALUES ($1, 'held') RETURNING id", wish.fan
            )
            await connection.execute(
                "UPDATE textbook_seats SET state = 'held', booking = $1 WHERE id = ANY($2)", booking, wish.seats
            )
        return {"booking": booking, "seats": wish.seats}

    @app.post("/bookings/{booking}/pay")
    async def pay(booking: int) -> dict[str, Any]:
        async with pools[0].acquire() as connection, connection.transaction():
            state = await connection.fetchval("SELECT state FROM textbook_bookings WHERE id = $1 FOR UPDATE", booking)
            if state != "held":
                raise HTTPException(409, "not held")
            await connection.execute("UPDATE textbook_bookings SET state = 'confirmed' WHERE id = $1", booking)
            await connection.execute("UPDATE textbook_seats SET state = 'sold' WHERE booking = $1", booking)
        return {"booking": booking, "state": "confirmed"}

    return app


async def textbook_tables(url: str, seats: list[str]) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "DROP TABLE IF EXISTS textbook_seats, textbook_bookings;"
            "CREATE TABLE textbook_seats (id text PRIMARY KEY, state text NOT NULL, booking bigint);"
            "CREATE INDEX textbook_seats_of ON textbook_seats (booking);"
            "CREATE TABLE textbook_bookings (id bigserial PRIMARY KEY, fan text NOT NULL, state text NOT NULL)"
        )
        await connection.executemany(
            "INSERT INTO textbook_seats (id, state) VALUES ($1, 'free')", [(s,) for s in seats]
        )
    finally:
        await connection.close()


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("kind", choices=("fastapi",))
    arguments.add_argument("postgres_url")
    postgres_url = arguments.parse_args().postgres_url
    import uvicorn

    sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(sock.getsockname()[1], flush=True)
    config = uvicorn.Config(fastapi_app(postgres_url), loop="uvloop", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[sock])


if __name__ == "__main__":
    main()
