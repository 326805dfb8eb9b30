"""A server with a large catalogue: 100,000 events, 500 of them on sale, on Redis and PostgreSQL.

Run: python -m bench.catalogue [--events 100000] [--on-sale 500] [--idle 20]. Prints the table of docs/scaling.md: how
long a server takes to start, how much CPU it uses while nobody comes, and how soon two servers sell an event that was
published a moment ago. Other work on the machine makes a start longer, so its wait for a core is printed too.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import statistics
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.api_servers import platform
from bench.events import load_events, many_events
from bench.measure import OUT
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.events.model.events import Event
from frontrow.core.clock import SystemClock
from tests.support.servers import Postgres, Valkey

TARGET_START_S, TARGET_IDLE_PERCENT, TARGET_OPEN_S = 5.0, 1.0, 1.0
NEW_EVENTS = 10
SETTLE_S = 75  # a server compares each event with the ledger once after its start, and is idle after a minute


async def fill(url: str, count: int, live_every: int, now_us: int) -> None:
    ledger = await open_ledger(url)
    try:
        await load_events(ledger, many_events(count, live_every=live_every, now_us=now_us), now_us=now_us)
    finally:
        await ledger.aclose()


async def publish(url: str, event: Event) -> None:
    ledger = await open_ledger(url)
    try:
        await ledger.catalogue.put_event(event, SystemClock()())
    finally:
        await ledger.aclose()


@contextlib.contextmanager
def started(folder: Path, redis_url: str, url: str, event: str) -> Iterator[tuple[psutil.Process, int, float]]:
    """A server; its process, port, and the seconds until it sold `event`."""
    began = time.monotonic()
    with platform(folder, redis_url, url, event=event) as (pid, port):
        yield psutil.Process(pid), port, time.monotonic() - began


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def waited_s(process: psutil.Process) -> float:
    """How long a process was ready to run while others had the cores; 0 where the system does not tell."""
    told = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[1]) for one in told) / 1e9


def is_open(port: int, event: str) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/events/{event}/seats.bin", timeout=5).close()
    except urllib.error.HTTPError:
        return False
    return True


def opening_s(url: str, ports: list[int], event: Event) -> float:
    """Seconds from the commit of a new event until all servers sell it."""
    asyncio.run(publish(url, event))
    began = time.monotonic()
    missing = set(ports)
    while missing and time.monotonic() - began < 30:
        missing -= {port for port in missing if is_open(port, event.id)}
        time.sleep(0.01)
    return time.monotonic() - began


def measure(count: int, on_sale: int, idle_s: float) -> dict[str, float]:
    now_us = SystemClock()()
    live_every = max(1, count // on_sale)
    last = f"evt_{(count - 1) // live_every * live_every:08d}"
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        Valkey() as valkey,
        Postgres() as postgres,
    ):
        migrate(postgres.url)
        asyncio.run(fill(postgres.url, count, live_every, now_us))
        with started(Path(one), valkey.url, postgres.url, last) as (first, port, cold_s):
            start_cpu_s, start_waited_s = cpu_s(first), waited_s(first)
            time.sleep(SETTLE_S)
            before, began = cpu_s(first), time.monotonic()
            time.sleep(idle_s)
            idle = 100 * (cpu_s(first) - before) / (time.monotonic() - began)
            with started(Path(two), valkey.url, postgres.url, last) as (_, other, second_s):
                new = itertools.islice(many_events(count + NEW_EVENTS, now_us=now_us), count, None)
                opened = [opening_s(postgres.url, [port, other], event) for event in new]
            memory = first.memory_info().rss / 2**20
    return {
        "start_s": cold_s,
        "second_start_s": second_s,
        "start_cpu_s": start_cpu_s,
        "start_waited_s": start_waited_s,
        "idle_percent": idle,
        "open_median_s": statistics.median(opened),
        "open_slowest_s": max(opened),
        "memory_mb": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--on-sale", type=int, default=500)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds to watch a server without visitors")
    asked = parser.parse_args()
    found = measure(asked.events, asked.on_sale, asked.idle)
    print(f"| {asked.events:,} events, {asked.on_sale} on sale | measured | target |\n|---|---:|---:|")
    for name, figure, target in (
        ("start of the first server, s", found["start_s"], TARGET_START_S),
        ("its CPU, s", found["start_cpu_s"], None),
        ("its wait for a core, s", found["start_waited_s"], None),
        ("start of a second server, s", found["second_start_s"], TARGET_START_S),
        ("CPU without visitors, % of a core", found["idle_percent"], TARGET_IDLE_PERCENT),
        ("a new event on two servers, median s", found["open_median_s"], TARGET_OPEN_S),
        ("a new event on two servers, slowest s", found["open_slowest_s"], TARGET_OPEN_S),
        ("memory of the first server, MB", found["memory_mb"], None),
    ):
        wanted = "" if target is None else f"{target:g}, {'met' if figure <= target else 'missed'}"
        print(f"| {name} | {figure:.2f} | {wanted} |")
    OUT.mkdir(exist_ok=True)
    (OUT / "catalogue.json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
