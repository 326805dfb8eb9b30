"""Server CPU per request of every hot route, by fast path and framework, beside a bare ASGI hello in the same run.

The routes have an event of their own, so that the stadium can be sold out whole afterwards. What changes something
(hold, extend, pay, release) is asked once for each booking: held in one run, then looked at, half of them paid, half
extended and given back.
"""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.api_sale import Person, enter
from bench.api_wire import Line, Times, in_parallel
from bench.http_load import Load, load
from bench.room import HEAD, get, idle_of
from frontrow.boxoffice.seats.model.venues import Plan

API_SERVERS = ("hot", "app")
EVENT = "evt_routes"
BASE = f"/v1/events/{EVENT}".encode()
WANTED = {"status": 0.8, "join": 1.2, "hold": 4.0, "pay": 8.0}  # times a bare hello, by the fast path
JSON = b"Content-Type: application/json\r\n"
CALLS = ("hold", "booking", "extend", "pay", "release")
LINES = 64


@dataclass
class ApiServer:
    """A server under test, people inside it, and the seats that are left for it."""

    pid: int
    port: int
    people: list[Person] = field(default_factory=list)
    taken: str = ""
    seats: list[str] = field(default_factory=list)


async def fill(api_server: ApiServer, count: int) -> str:
    """Let people in, one of whom takes the seat that the others are refused; the address of the map's drawing."""

    async def each(line: Line, _: int) -> None:
        api_server.people.append(await enter(line, BASE.decode()))

    api_server.people, times = [], Times()
    await in_parallel(range(count), each, api_server.port, 32, times)
    line = Line("127.0.0.1", api_server.port, times)
    api_server.taken = api_server.seats.pop()
    visit = f"frontrow-pass: {api_server.people[0].visit}\r\n"
    status, told = await line.ask("hold", "POST", f"{BASE.decode()}/holds", {"seats": [api_server.taken]}, visit)
    if status != 201:
        raise SystemExit(f"hold answered {status}: {told}")
    _, event = await line.ask("event", "GET", BASE.decode())
    line.close()
    return str(event["map_url"])


def with_body(method: bytes, path: bytes, headers: bytes, body: bytes) -> bytes:
    return b"%b %b HTTP/1.1\r\n%b%b%bContent-Length: %d\r\n\r\n%b" % (
        method,
        path,
        HEAD,
        headers,
        JSON if body else b"",
        len(body),
        body,
    )


def plain_asks(api_server: ApiServer, map_url: str) -> dict[str, tuple[bytes, bytes, int]]:
    """name -> (request, expected status, connections): what may be asked again and again."""
    bearer = f"Authorization: Bearer {api_server.people[0].place}\r\n".encode()
    visit = f"Frontrow-Pass: {api_server.people[0].visit}\r\n".encode()
    taken = with_body(b"POST", BASE + b"/holds", visit, json.dumps({"seats": [api_server.taken]}).encode())
    return {
        "now-serving": (get(BASE + b"/room/now-serving"), b"200", 64),
        "status": (get(BASE + b"/room/status", bearer), b"200", 64),
        "join": (with_body(b"POST", BASE + b"/room/join", b"", b""), b"201", 128),
        "seats.bin": (get(BASE + b"/seats.bin"), b"200", 64),
        "seats poll": (get(BASE + b"/seats/poll"), b"200", 64),
        "hold of a taken seat": (taken, b"409", 64),
        "event": (get(BASE), b"200", 64),
        "events": (get(b"/v1/events"), b"200", 64),
        "map drawing": (get(map_url.encode()), b"200", 16),
    }


class Bookings:
    """Bookings made at a server, each asked about once by each call."""

    def __init__(self, api_server: ApiServer, count: int) -> None:
        self.api_server, self.count = api_server, count
        self.seats = [api_server.seats.pop() for _ in range(count)]
        self.proofs: list[bytes] = []
        self.ids: list[bytes] = []

    def hold(self, number: int) -> bytes:
        person = self.api_server.people[number % len(self.api_server.people)]
        visit = f"Frontrow-Pass: {person.visit}\r\n".encode()
        return with_body(b"POST", BASE + b"/holds", visit, json.dumps({"seats": [self.seats[number]]}).encode())

    def held(self, answers: list[bytes]) -> None:
        """Take over what the holds were answered."""
        by_seat = {seat: number for number, seat in enumerate(self.seats)}
        for answer in answers:
            told = json.loads(answer.partition(b"\r\n\r\n")[2])
            person = self.api_server.people[by_seat[told["seats"][0]] % len(self.api_server.people)]
            self.ids.append(told["booking"].encode())
            text = f"Frontrow-Pass: {person.visit}\r\nFrontrow-Booking: {told['booking_token']}\r\n"
            self.proofs.append(text.encode())

    def of(self, method: bytes, behind: bytes, body: bytes = b"", begin: int = 0) -> Callable[[int], bytes]:
        def make(number: int) -> bytes:
            at = begin + number
            path = b"/v1/bookings/%b%b" % (self.ids[at], behind)
            return get(path, self.proofs[at]) if method == b"GET" else with_body(method, path, self.proofs[at], body)

        return make

    def measured(self, idle_per_s: float) -> dict[str, Load]:
        """Each call's cost."""
        answers: list[bytes] = []
        half = self.count // 2
        about: dict[str, Any] = {"connections": LINES, "idle_per_s": idle_per_s}
        pid, port = self.api_server.pid, self.api_server.port
        found = {"hold": load(pid, port, self.hold, total=self.count, ok=b"201", answers=answers, **about)}
        self.held(answers)
        card = b'{"method":"pm_card_visa"}'
        found["booking"] = load(pid, port, self.of(b"GET", b""), total=self.count, **about)
        extend = self.of(b"PATCH", b"/hold", b'{"extend":true}', begin=half)
        found["pay"] = load(pid, port, self.of(b"POST", b"/pay", card), total=half, **about)
        found["extend"] = load(pid, port, extend, total=self.count - half, **about)
        release = self.of(b"DELETE", b"/hold", begin=half)
        found["release"] = load(pid, port, release, total=self.count - half, **about)
        return found


class Best:
    """The least CPU and the highest rate of each route by each server."""

    def __init__(self) -> None:
        self.cpu_us: dict[str, dict[str, float]] = {}
        self.per_s: dict[str, dict[str, float]] = {}

    def keep(self, route: str, name: str, one: Load) -> None:
        if one.failed:
            raise SystemExit(f"{route} by {name}: {one.failed} of {one.requests} answers were wrong")
        cost, speed = self.cpu_us.setdefault(route, {}), self.per_s.setdefault(route, {})
        cost[name] = min(cost.get(name, 1e9), one.cpu_us)
        speed[name] = max(speed.get(name, 0.0), one.per_s)


def routes(
    api_servers: dict[str, ApiServer],
    hello: tuple[int, int],
    total: int,
    bookings: int,
    rounds: int,
    step: Callable[[str], None],
) -> Best:
    """Every route at every server, several rounds; `step` is told what comes next."""
    maps = {name: asyncio.run(fill(api_server, 64)) for name, api_server in api_servers.items()}
    idle = idle_of(
        {"hello": hello} | {name: (api_server.pid, api_server.port) for name, api_server in api_servers.items()}
    )
    best = Best()
    for _ in range(rounds):
        step("hello")
        best.keep("hello", "bare", load(*hello, get(b"/"), total=total, idle_per_s=idle["hello"]))
        for name, api_server in api_servers.items():
            for route, (request, ok, lines) in plain_asks(api_server, maps[name]).items():
                step(f"{route}, {name}")
                count = total // 8 if route == "map drawing" else total if name == "hot" else total // 4
                about: dict[str, Any] = {"total": count, "connections": lines, "ok": ok, "idle_per_s": idle[name]}
                best.keep(route, name, load(api_server.pid, api_server.port, request, **about))
            step(f"bookings, {name}")
            asyncio.run(fill(api_server, 64))  # somebody new: a visit ends soon after its purchase
            for route, one in Bookings(api_server, bookings).measured(idle[name]).items():
                best.keep(route, name, one)
    return best


def seats_for(plan: Plan, api_servers: dict[str, ApiServer]) -> None:
    """Every server gets its own seats."""
    for at, api_server in enumerate(api_servers.values()):
        api_server.seats = list(plan.seat_ids)[at :: len(api_servers)]


def show(best: Best) -> list[dict[str, Any]]:
    """The table; its rows."""
    floor = best.cpu_us["hello"]["bare"]
    print(f"bare ASGI hello: {floor:.1f} us CPU a request, {best.per_s['hello']['bare']:,.0f}/s\n")
    heads = (f"{head:>9}" for head in ("hot us", "x hello", "wanted", "app us", "x hello"))
    print(f"{'route':24}{''.join(heads)}{'hot req/s':>11}{'app req/s':>11}")
    rows = []
    for route, row in best.cpu_us.items():
        if route == "hello":
            continue
        speed = best.per_s[route]
        told = {"route": route} | {f"{api_server}_us": row[api_server] for api_server in API_SERVERS}
        told |= {f"{api_server}_ratio": row[api_server] / floor for api_server in API_SERVERS}
        wanted = WANTED.get(route)
        rows.append(
            told | {f"{api_server}_per_s": speed[api_server] for api_server in API_SERVERS} | {"wanted_ratio": wanted}
        )
        missed = wanted is not None and row["hot"] / floor > wanted
        print(
            f"{route:24}{row['hot']:9.1f}{row['hot'] / floor:9.2f}{wanted or '':>9}{row['app']:9.1f}"
            f"{row['app'] / floor:9.2f}{speed['hot']:11,.0f}{speed['app']:11,.0f}{'   MISSED' if missed else ''}"
        )
    return rows


def wrk(port: int, path: str, seconds: int = 3) -> float | None:
    """Requests a second as wrk sees them; None where it is not installed."""
    program = shutil.which("wrk")
    if program is None:
        return None
    command = [program, "-t1", "-c64", f"-d{seconds}s", f"http://127.0.0.1:{port}{path}"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Requests/sec:\s*([\d.]+)", told)
    return float(found[1]) if found else None
