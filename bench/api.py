"""`make bench-api`: what the whole platform costs over HTTP, on this machine, in one run.

1. Server CPU per request of every hot route, through both doors, as a ratio to a bare ASGI hello. 2. Requests a second
(wrk where it is installed, else our own generator). 3. Open streams. 4. A stadium sold out over HTTP on Redis and
PostgreSQL: time, latency by step, CPU by part; beside it a textbook (FastAPI, SELECT FOR UPDATE) on the same
PostgreSQL. 5. Goodput under ten times too much. Results: bench/out/api.json and api.png.
"""

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.api_overload import overload
from bench.api_sale import Door, buy_all, enter_all, textbook
from bench.api_servers import EVENT, platform, put_on_sale
from bench.http_load import load, server
from bench.measure import OUT, bar_plot
from bench.room import HEAD, get, idle_of
from bench.room_streams import streams
from frontrow.boxoffice.ledger.migrate import migrate
from frontrow.boxoffice.plans.generate import generate
from frontrow.rehearsal.servers import Postgres, Valkey

BASE = f"/v1/events/{EVENT}".encode()
DOORS = ("hot", "app")


def asks(door: Door, map_url: str) -> dict[str, tuple[bytes, bytes, int]]:
    """name -> (request, expected status, connections)."""
    bearer = f"Authorization: Bearer {door.people[0].place}\r\n".encode()
    visit = f"Frontrow-Pass: {door.people[0].visit}\r\nContent-Type: application/json\r\n".encode()
    body = json.dumps({"seats": [door.taken]}).encode()
    hold = b"POST %b/holds HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (BASE, HEAD, visit, len(body), body)
    join = b"POST %b/room/join HTTP/1.1\r\n%bContent-Length: 0\r\n\r\n" % (BASE, HEAD)
    return {
        "now-serving": (get(BASE + b"/room/now-serving"), b"200", 64),
        "status": (get(BASE + b"/room/status", bearer), b"200", 64),
        "join": (join, b"201", 128),
        "seats.bin": (get(BASE + b"/seats.bin"), b"200", 64),
        "seats poll": (get(BASE + b"/seats/poll"), b"200", 64),
        "hold of a taken seat": (hold, b"409", 64),
        "event": (get(BASE), b"200", 32),
        "events": (get(b"/v1/events"), b"200", 32),
        "map drawing": (get(map_url.encode()), b"200", 16),
    }


def routes(doors: dict[str, Door], hello: tuple[int, int], total: int, rounds: int, map_url: str) -> dict[str, Any]:
    """Least CPU per request of each route through each door, and of the bare hello."""
    idle = idle_of({"hello": hello} | {name: (door.pid, door.port) for name, door in doors.items()})
    best: dict[str, dict[str, float]] = {}
    rates: dict[str, dict[str, float]] = {}

    def keep(route: str, name: str, one: Any) -> None:
        if one.failed:
            raise SystemExit(f"{route} by {name}: {one.failed} of {one.requests} answers were wrong")
        row = best.setdefault(route, {})
        row[name] = min(row.get(name, 1e9), one.cpu_us)
        speed = rates.setdefault(route, {})
        speed[name] = max(speed.get(name, 0.0), one.per_s)

    for _ in range(rounds):
        keep("hello", "bare", load(*hello, get(b"/"), total=total, idle_per_s=idle["hello"]))
        for name, door in doors.items():
            for route, (request, ok, lines) in asks(door, map_url).items():
                count = total if name == "hot" and route not in ("event", "events", "map drawing") else total // 4
                one = load(door.pid, door.port, request, total=count, connections=lines, ok=ok, idle_per_s=idle[name])
                keep(route, name, one)
    return {"cpu_us": best, "per_s": rates}


def wrk(port: int, path: str) -> float | None:
    """Requests a second as wrk sees them; None where it is not installed."""
    program = shutil.which("wrk")
    if program is None:
        return None
    command = [program, "-t1", "-c64", "-d3s", f"http://127.0.0.1:{port}{path}"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Requests/sec:\s*([\d.]+)", told)
    return float(found[1]) if found else None


def show_routes(found: dict[str, Any]) -> list[dict[str, Any]]:
    floor = found["cpu_us"]["hello"]["bare"]
    print(f"bare ASGI hello: {floor:.1f} us CPU a request\n")
    print(f"{'route':24}{'hot us':>9}{'x hello':>9}{'app us':>9}{'x hello':>9}{'hot req/s':>11}{'app req/s':>11}")
    rows = []
    for route, row in found["cpu_us"].items():
        if route == "hello":
            continue
        speed = found["per_s"][route]
        told = {"route": route} | {f"{door}_us": row[door] for door in DOORS}
        rows.append(told | {f"{door}_ratio": row[door] / floor for door in DOORS})
        print(
            f"{route:24}{row['hot']:9.1f}{row['hot'] / floor:9.2f}{row['app']:9.1f}{row['app'] / floor:9.2f}"
            f"{speed['hot']:11,.0f}{speed['app']:11,.0f}"
        )
    return rows


def show_sale(name: str, sale: dict[str, Any]) -> None:
    cpu = sale["cpu_s"]
    print(f"\n{name}: {sale['seats']:,} seats in {sale['bookings']:,} bookings, {cpu['wall']:.1f} s")
    print(f"  {sale['bookings'] / cpu['wall']:,.0f} bookings/s, {sale['seats'] / cpu['wall']:,.0f} seats/s")
    split = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in cpu.items() if part != "wall")
    print(f"  CPU: {split}; {cpu['server'] / sale['bookings'] * 1e6:,.0f} us of the server a booking")
    for step, row in sale["steps"].items():
        print(f"  {step:8} {row['count']:8,}  p50 {row['p50_ms']:8.2f} ms  p99 {row['p99_ms']:8.2f} ms")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seats", type=int, default=50_000)
    options.add_argument("--requests", type=int, default=8_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--streams", type=int, default=10_000)
    options.add_argument("--textbook", type=int, default=4_000, help="bookings of the textbook")
    chosen = options.parse_args()
    began_s = time.monotonic()
    told: dict[str, Any] = {"generator": "wrk" if shutil.which("wrk") else "bench.http_load"}
    plan = generate("stadium", chosen.seats)
    with tempfile.TemporaryDirectory() as folder, Valkey() as valkey, Postgres() as postgres:
        migrate(postgres.url)
        asyncio.run(put_on_sale(postgres.url, plan))
        home, parts = Path(folder), {"postgres": postgres.pid, "redis": valkey.pid}
        with (
            server("bench.room_servers", "hello") as hello,
            platform(home, valkey.url, postgres.url, hot=True, jobs=True) as hot,
            platform(home, valkey.url, postgres.url, hot=False, jobs=False) as cold,
        ):
            doors = {"hot": Door(*hot, plan), "app": Door(*cold, plan)}
            for door in doors.values():
                asyncio.run(enter_all(door, 64))
            map_url = asyncio.run(doors["hot"].map_url())
            found = routes(doors, hello, chosen.requests, chosen.rounds, map_url)
            told["routes"] = show_routes(found)
            told["hello_us"] = found["cpu_us"]["hello"]["bare"]
            paths = {"hello": (hello[1], "/"), "now-serving": (hot[1], f"{BASE.decode()}/room/now-serving")}
            told["wrk_per_s"] = {name: wrk(*ask) for name, ask in paths.items()}
            if shutil.which("wrk"):
                print(f"\nwrk, requests a second: {told['wrk_per_s']}")
            told["sale"] = asyncio.run(buy_all(doors["hot"], parts | {"server": hot[0]}))
            show_sale("Frontrow, hot lane, Redis and PostgreSQL", told["sale"])
        told["textbook"] = textbook(postgres, plan, chosen.textbook)
        show_sale("textbook: FastAPI, SELECT FOR UPDATE (hold and pay only)", told["textbook"])
    told["streams"] = streams(chosen.streams)
    told["overload"] = overload()
    told["took_s"] = time.monotonic() - began_s
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "api.json").write_text(json.dumps(told, indent=1) + "\n")
    floor = {"bare hello": told["hello_us"]}
    groups = {
        row["route"]: {"Frontrow, hot lane": row["hot_us"], "Frontrow, framework": row["app_us"]} | floor
        for row in told["routes"]
    }
    drawn = bar_plot("api", "Server CPU per request", groups, "µs")
    print(f"\n{told['took_s']:.0f} s; written to {OUT / 'api.json'} and {drawn}")


if __name__ == "__main__":
    main()
