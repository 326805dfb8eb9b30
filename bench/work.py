"""`python -m bench.work`: what each step of a purchase costs every part: server, Redis, PostgreSQL, bytes sent.

The same fans make one step after the other, all of them together, on one server with Redis and PostgreSQL. What the
parts use anyway when nobody asks is subtracted. `python -m bench.costs` puts the result into the package.
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import redis

from bench.api_servers import EVENT, platform, put_on_sale
from bench.api_wire import cpu_of
from bench.measure import OUT
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.rehearsal.fan_calls import FanCalls, FanRequest
from frontrow.rehearsal.http_client import ConnectionPool, Reply, Target
from tests.support.servers import Postgres, Valkey

CONNECTIONS = 16
SEATS = 5_000
IDLE_S = 5.0
SETTLE_S = 3.0  # mails and facts of what was sold
PARTS = ("server", "redis", "postgres")
Ask = Callable[[FanCalls], Awaitable[Reply]]


async def wait_until_active(calls: FanCalls) -> Reply:
    for _ in range(200):
        reply = await calls.read_status()
        if reply.json()["state"] == "active":
            break
        await asyncio.sleep(0.05)
    return reply


async def hold_two(calls: FanCalls) -> Reply:
    """Where a thousand want the best seats at the same moment, a few must ask again."""
    for _ in range(5):
        reply = await calls.hold_best(2, apart_ok=True)
        if reply.status == 201:
            break
    return reply


def steps(map_url: str) -> list[tuple[str, Ask, int]]:
    """(name, what a fan asks, the status it must get), in the order of a purchase."""
    return [
        ("page", FanCalls.open_page, 200),
        ("event", FanCalls.read_event, 200),
        ("join", FanCalls.join, 201),
        ("now_serving", FanCalls.read_window, 200),
        ("active", wait_until_active, 200),  # not counted: how often it asks depends on the room
        ("status", FanCalls.read_status, 200),
        ("claim", FanCalls.claim, 201),
        ("map", lambda calls: calls.read_map(map_url), 200),
        ("seats", FanCalls.read_seats, 200),
        ("hold", hold_two, 201),
        ("pay", lambda calls: calls.pay("pm_card_visa"), 200),
        ("tickets", FanCalls.read_tickets, 200),
        ("left", FanCalls.leave_shop, 200),
    ]


def received_bytes(pool: ConnectionPool) -> int:
    return sum(connection.received_bytes for connection in pool._all)


async def measure(port: int, pids: dict[str, int], redis_url: str, fans: int) -> dict[str, Any]:
    pool = ConnectionPool(Target.from_url(f"http://127.0.0.1:{port}"), CONNECTIONS)

    def sender(address: str) -> Callable[[FanRequest], Awaitable[Reply]]:
        async def send(request: FanRequest) -> Reply:
            async with pool.connection(address) as connection:
                return await connection.send(request.method, request.path, request.body, **request.headers)

        return send

    async with cpu_of(pids) as idle:
        await asyncio.sleep(IDLE_S)
    crowd = [FanCalls(EVENT, sender(f"10.0.{n >> 8}.{n & 255}")) for n in range(fans)]
    map_url = (await crowd[0].read_event()).json()["map_url"]
    store = redis.Redis.from_url(redis_url)
    bytes_before = store.info("memory")["used_memory"]
    work_us: dict[str, dict[str, float]] = {}
    sent_bytes: dict[str, float] = {}
    for name, ask, status in steps(map_url):
        before = received_bytes(pool)
        async with cpu_of(pids) as used:
            replies = await asyncio.gather(*(ask(calls) for calls in crowd))
            sent = (received_bytes(pool) - before) / fans
            await asyncio.sleep(SETTLE_S if name == "pay" else 0.3)
        wrong = [reply for reply in replies if reply.status != status]
        if wrong:
            raise SystemExit(
                f"{name}: {len(wrong)} wrong answers, for example {wrong[0].status} {wrong[0].body[:200]!r}"
            )
        if name != "active":
            net = {part: used[part] - idle[part] / idle["wall"] * used["wall"] for part in PARTS}
            work_us[name] = {part: round(max(0.0, net[part]) / fans * 1e6, 1) for part in PARTS}
            sent_bytes[name] = round(sent)
    kept = (store.info("memory")["used_memory"] - bytes_before) / fans
    store.close()
    static = await read_static(pool)
    await pool.aclose()
    return {
        "fans": fans,
        "work_us": work_us,
        "sent_bytes": sent_bytes,
        "redis_bytes_per_buyer": round(kept),
        "static_bytes": static,
    }


async def read_static(pool: ConnectionPool) -> int:
    """Bytes of the scripts, styles and pictures that a first visit of the event's page loads."""
    total = 0
    async with pool.connection("10.1.0.1") as connection:
        page = (await connection.send("GET", f"/events/{EVENT}")).body.decode()
        for path in sorted(set(re.findall(r'(?:src|href)="(/static/[^"#]+)"', page))):
            total += len((await connection.send("GET", path, Accept_Encoding="gzip, br, zstd")).body)
    return total


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--fans", type=int, default=1_500)
    chosen = options.parse_args()
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Valkey() as valkey, Postgres() as postgres:
        migrate(postgres.url)
        asyncio.run(put_on_sale(postgres.url, generate("stadium", SEATS)))
        with platform(Path(folder), valkey.url, postgres.url) as (pid, port):
            pids = {"server": pid, "redis": valkey.pid, "postgres": postgres.pid}
            told = asyncio.run(measure(port, pids, valkey.url, chosen.fans))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "work.json").write_text(json.dumps(told, indent=1) + "\n")
    print(f"{'step':12} {'server µs':>10} {'redis µs':>10} {'postgres µs':>12} {'bytes':>9}")
    for name, row in told["work_us"].items():
        cpu = f"{row['server']:10,.0f} {row['redis']:10,.0f} {row['postgres']:12,.0f}"
        print(f"{name:12} {cpu} {told['sent_bytes'][name]:9,}")
    print(f"{time.monotonic() - began_s:.0f} s; written to {OUT / 'work.json'}")


if __name__ == "__main__":
    main()
