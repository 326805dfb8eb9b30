"""What the hand-over to a shop on another domain costs the room, beside a claim on the room's own host.

One `frontrow room serve` in memory with its audit in SQLite. All people join first and are admitted. Then the claims of
one half lead to the own host, those of the other half to another domain, and each hand-over is exchanged. The figure is
the server's CPU per person. `python -m bench.room_hand_over`, or as part of `make bench-room`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.http_load import load
from frontrow.waitingroom.credentials.hand_over import bind_of
from tests.support.servers import free_port

SHOP, VERIFIER = "https://shop.example", "v" * 43
TARGET = 1.5
HEAD = b"Host: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Type: application/json\r\n"
OUT = Path("bench/out")
SETTINGS = {
    "SHOPS": SHOP,
    "SHOP_URL": "/shop",
    "CAPACITY": "1000000",
    "HUMAN": "none",  # the visitors are programs
    "WINDOW_SIZE": "1000000",
    "INTERVAL_S": "0.2",
    "PER_IP": "1000000/second",
    "PER_PERSON": "1000000/second",
}


def post(path: bytes, body: dict[str, Any], extra: bytes = b"") -> bytes:
    text = json.dumps(body).encode()
    return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (path, HEAD, extra, len(text), text)


def bodies(answers: list[bytes]) -> list[Any]:
    return [json.loads(answer.partition(b"\r\n\r\n")[2]) for answer in answers]


def claim(place: str, wish: str) -> bytes:
    bearer = b"Authorization: Bearer " + place.encode() + b"\r\n"
    return post(b"/claim", {"page": True, "wish": wish}, bearer)


def measure(pid: int, port: int, people: int) -> dict[str, float]:
    """CPU per person: of a claim, and of a claim that leads elsewhere with its exchange."""
    joined: list[bytes] = []
    load(pid, port, post(b"/join", {}), total=2 * people, ok=b"201", answers=joined)
    places = [body["place"] for body in bodies(joined)]
    time.sleep(2)  # the window slides over all of them
    here = [claim(place, "/shop") for place in places[:people]]
    there = [claim(place, f"{bind_of(VERIFIER)}@{SHOP}/seats") for place in places[people:]]
    handed: list[bytes] = []
    cost_here = load(pid, port, lambda number: here[number], total=people, ok=b"201")
    cost_there = load(pid, port, lambda number: there[number], total=people, ok=b"201", answers=handed)
    tokens = [body["next"].rpartition("frontrow=")[2] for body in bodies(handed)]
    asks = [post(b"/exchange", {"token": token, "verifier": VERIFIER}) for token in tokens]
    cost_exchange = load(pid, port, lambda number: asks[number], total=people)
    failed = cost_here.failed + cost_there.failed + cost_exchange.failed
    if failed:
        raise SystemExit(f"{failed} requests failed")
    return {"claim": cost_here.cpu_us, "handed claim": cost_there.cpu_us, "exchange": cost_exchange.cpu_us}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--people", type=int, default=3_000)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    best: dict[str, float] = {}
    for _ in range(chosen.rounds):
        for name, cpu_us in served(chosen.people).items():
            best[name] = min(cpu_us, best.get(name, cpu_us))
    ratio = (best["handed claim"] + best["exchange"]) / best["claim"]
    print(f"{'':24} {'CPU us':>7}")
    for name, cpu_us in best.items():
        print(f"{name:24} {cpu_us:7.1f}")
    print(f"hand-over, whole: {ratio:.2f} x a claim (target at most {TARGET}){'' if ratio <= TARGET else '   MISSED'}")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "room_hand_over.json").write_text(json.dumps(best | {"ratio": ratio, "target": TARGET}, indent=1))


def served(people: int) -> dict[str, float]:
    """One round with a server of its own."""
    port = free_port()
    environment = os.environ | {f"FRONTROW_ROOM_{name}": value for name, value in SETTINGS.items()}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "frontrow.cli.main", "room", "serve", "-e", "aurora"]
        command += ["--port", str(port), "--folder", folder]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(f"http://127.0.0.1:{port}/healthz")
            return measure(process.pid, port, people)
        finally:
            process.terminate()
            process.wait(20)


def wait_for(url: str) -> None:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the room did not come up")


if __name__ == "__main__":
    main()
