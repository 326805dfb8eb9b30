"""`make bench-room`: what the waiting room costs, beside a bare ASGI hello and FastAPI routes doing the same.

All servers run at once and are asked in turn, several rounds; the figure is the server's CPU per request (user and
system, less what it uses when idle) in its least disturbed round, and the ratios are within this run. Then Redis calls
per join, the state of 14 million places (`bench.room_state`), and the cost of open streams against a bare asyncio
writer.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import redis

from bench.http_load import Load, cpu_s, load, server
from bench.room_streams import streams
from frontrow.waitingroom.credentials.places import SEEN_ONCE, Place, PlaceSigner
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from tests.support.servers import Valkey

HEAD = b"Host: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n"
TARGETS = {"now-serving": 0.6, "status": 0.8, "status again": 0.8, "join": 1.2}
CONNECTIONS = {"join": 256}  # others 64; each is compared with a hello over as many
PEERS = {"status again": "status"}  # FastAPI remembers nothing
PLACES = 5_000
FRESH = 2 * SEEN_ONCE  # asked in turn: each is forgotten before it comes again
IDLE_S = 3.0
OUT = Path("bench/out")


def get(path: bytes, extra: bytes = b"") -> bytes:
    return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (path, HEAD, extra)


JOIN = b"POST /join HTTP/1.1\r\n%bContent-Length: 0\r\n\r\n" % HEAD


def places(port: int, count: int) -> list[bytes]:
    """Different people's places, so that nothing is answered from a memory of the last one."""
    deadline_s = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as line:
            found = []
            for _ in range(count):
                line.request("POST", "/join")
                found.append(json.loads(line.getresponse().read())["place"].encode())
            return found
        if time.monotonic() > deadline_s:
            raise SystemExit("a server of the benchmark did not come up")
        time.sleep(0.1)


def minted(keys: RoomKeys) -> list[bytes]:
    """More different places than the room remembers, of people who are in line; signed with the room's own keys."""
    signer = PlaceSigner(keys.place_secrets)
    return [
        signer.mint_bytes(Place("aurora", 0, 1, number % PLACES + 1, 1_700_000_000 + number)) for number in range(FRESH)
    ]


def questions(port: int, fresh: list[bytes]) -> dict[str, tuple[Any, bytes]]:
    """What each server is asked: name -> (request, expected status). `fresh` is empty for the peers."""

    def ask(place: bytes) -> bytes:
        return get(b"/status", b"Authorization: Bearer " + place + b"\r\n")

    again = [ask(place) for place in places(port, PLACES)]
    found: dict[str, tuple[Any, bytes]] = {"now-serving": (get(b"/now-serving"), b"200")}
    if fresh:
        new = itertools.cycle([ask(place) for place in fresh])
        found["status"] = (lambda number: next(new), b"200")
        found["status again"] = (lambda number: again[number % PLACES], b"200")
    else:
        found["status"] = (lambda number: again[number % PLACES], b"200")
    return found | {"join": (JOIN, b"201")}


def store_calls(client: "redis.Redis") -> int:
    """Calls that give out positions: scripts and increments."""
    told: Any = client.info("commandstats")
    return sum(row["calls"] for name, row in told.items() if "evalsha" in name or "incr" in name)


def measure(rounds: int, total: int) -> dict[str, Any]:
    """The least CPU per request of every server and route, and the Redis calls per join."""
    best: dict[str, dict[str, Load]] = {}
    calls: dict[str, float] = {}
    kinds = ("room", "room-cold", "fastapi")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        fresh = minted(RoomKeys.load(folder))
        valkey = stack.enter_context(Valkey())
        client = redis.Redis.from_url(valkey.url)
        hellos = {kind: stack.enter_context(server("bench.room_servers", kind)) for kind in ("hello", "hot-hello")}
        running = {
            kind: stack.enter_context(server("bench.room_servers", kind, f"{valkey.url[:-1]}{n}", folder))
            for n, kind in enumerate(kinds)
        }
        asked = {kind: questions(port, fresh if kind != "fastapi" else []) for kind, (_, port) in running.items()}
        idle = idle_of({**hellos, **running})
        for _ in range(rounds):
            for kind, (pid, port) in hellos.items():
                for many in (64, 256):
                    one = load(
                        pid, port, get(b"/"), total=total, connections=many, idle_per_s=idle[kind], together=True
                    )
                    keep(best, kind, f"hello {many}", one)
            for kind, (pid, port) in running.items():
                count = total if kind == "room" else total // 4  # the dear ones need fewer to be measured as well
                for route, (request, ok) in asked[kind].items():
                    before = store_calls(client)
                    options = {"connections": CONNECTIONS.get(route, 64), "idle_per_s": idle[kind]}
                    keep(best, kind, route, load(pid, port, request, ok=ok, total=count, together=True, **options))
                    if route == "join":
                        calls[kind] = min(calls.get(kind, 1.0), (store_calls(client) - before) / count)
        client.close()
    return {"best": best, "redis_calls_per_join": calls}


def idle_of(running: dict[str, tuple[int, int]]) -> dict[str, float]:
    """CPU per second of each server when nobody asks: loops and timers, no part of a request's cost."""
    before = {name: cpu_s(pid) for name, (pid, _) in running.items()}
    time.sleep(IDLE_S)
    return {name: (cpu_s(pid) - before[name]) / IDLE_S for name, (pid, _) in running.items()}


def keep(best: dict[str, dict[str, Load]], kind: str, route: str, one: Load) -> None:
    if one.failed:
        raise SystemExit(f"{kind} {route}: {one.failed} of {one.requests} answers were wrong")
    known = best.setdefault(kind, {}).get(route)
    if known is None or one.cpu_us < known.cpu_us:
        best[kind][route] = one


def table(found: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a route: CPU, ratio to the floor and its target, and how many times cheaper than FastAPI."""
    best = found["best"]
    rows = []
    for route, target in TARGETS.items():
        floor = best["hello"][f"hello {CONNECTIONS.get(route, 64)}"].cpu_us
        mine, cold = (best[kind][route].cpu_us for kind in ("room", "room-cold"))
        peer = best["fastapi"][PEERS.get(route, route)].cpu_us
        rows.append(
            {
                "route": route,
                "cpu_us": mine,
                "floor_us": floor,
                "ratio": mine / floor,
                "target": target,
                "litestar_us": cold,
                "fastapi_us": peer,
                "cheaper_than_fastapi": peer / mine,
                "met": mine / floor <= target and peer / mine >= 5,
            }
        )
    return rows


def show(rows: list[dict[str, Any]], found: dict[str, Any]) -> None:
    best = found["best"]
    for many in (64, 256):
        floor, fast = (best[kind][f"hello {many}"].cpu_us for kind in ("hello", "hot-hello"))
        print(f"{many} connections: bare ASGI hello {floor:.1f} us, fast path {fast:.1f} ({fast / floor:.2f}x)")
    print()
    print(
        f"{'route':12} {'CPU us':>7} {'x floor':>8} {'target':>7} {'litestar us':>12} {'fastapi us':>11} {'cheaper':>8}"
    )
    for row in rows:
        print(
            f"{row['route']:12} {row['cpu_us']:7.1f} {row['ratio']:8.2f} {row['target']:7.1f}"
            f" {row['litestar_us']:12.1f} {row['fastapi_us']:11.1f} {row['cheaper_than_fastapi']:7.1f}x"
            f"{'' if row['met'] else '   MISSED'}"
        )
    calls = found["redis_calls_per_join"]["room"]
    print(f"\nRedis calls per join under burst: 1/{1 / calls:.0f} (target at most 1/20)")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--requests", type=int, default=20_000)
    options.add_argument("--streams", type=int, default=10_000)
    options.add_argument("--only-http", action="store_true")
    chosen = options.parse_args()
    found = measure(chosen.rounds, chosen.requests)
    rows = table(found)
    show(rows, found)
    told: dict[str, Any] = {"http": rows, "redis_calls_per_join": found["redis_calls_per_join"]}
    if not chosen.only_http:
        told["streams"] = streams(chosen.streams)
        told["state"] = state()
        told["hand_over"] = hand_over()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "room.json").write_text(json.dumps(told, indent=1))
    plot(rows, OUT / "room.png")
    print(f"\nwritten to {OUT / 'room.json'} and {OUT / 'room.png'}")


def state() -> Any:
    """The state of 14 million places, measured and printed by its own benchmark."""
    print(flush=True)
    subprocess.run([sys.executable, "-m", "bench.room_state"], check=True)
    return json.loads((OUT / "room_state.json").read_text())


def hand_over() -> Any:
    """The cost of a hand-over to a shop on another domain, measured and printed by its own benchmark."""
    print(flush=True)
    subprocess.run([sys.executable, "-m", "bench.room_hand_over"], check=True)
    return json.loads((OUT / "room_hand_over.json").read_text())


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Each route's server CPU as a multiple of a bare hello's, with its target."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.2))
    names = [row["route"] for row in rows]
    for offset, key, label in (
        (-0.25, "cpu_us", "fast path"),
        (0.0, "litestar_us", "litestar"),
        (0.25, "fastapi_us", "fastapi"),
    ):
        axes.bar(
            [at + offset for at in range(len(rows))], [row[key] / row["floor_us"] for row in rows], 0.24, label=label
        )
    axes.scatter(
        [at - 0.25 for at in range(len(rows))],
        [row["target"] for row in rows],
        marker="_",
        s=400,
        color="black",
        label="target",
    )
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), names)
    axes.set_ylabel("server CPU, bare ASGI hello = 1")
    axes.legend(frameon=False, ncols=4)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
