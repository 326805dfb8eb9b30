"""A stadium sold out over HTTP: everybody joins, looks, claims, holds and pays; and a textbook doing the same."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from bench.api_servers import EVENT, textbook_tables
from bench.api_wire import Line, Times, cpu_of, in_parallel
from bench.http_load import server
from frontrow.boxoffice.model.venues import Plan
from frontrow.rehearsal.servers import Postgres

BASE = f"/v1/events/{EVENT}"
LINES = 128
GROUP = 4
LOOKS = 2_000
CONTENTION = 0.2  # of the buyers first want seats that somebody has


@dataclass
class Person:
    place: str
    visit: str = ""


@dataclass
class Door:
    """A server under test, and people inside it."""

    pid: int
    port: int
    plan: Plan
    people: list[Person] = field(default_factory=list)
    taken: str = ""

    async def map_url(self) -> str:
        line = Line("127.0.0.1", self.port, Times())
        _, event = await line.ask("event", "GET", BASE)
        line.close()
        return str(event["map_url"])


def groups_of(plan: Plan) -> list[list[str]]:
    """The seats in groups that are bought together, neighbours in the plan's order."""
    ids = list(plan.seat_ids)
    return [ids[at : at + GROUP] for at in range(0, len(ids), GROUP)]


async def enter(line: Line) -> Person:
    """join → status → claim."""
    status, joined = await line.ask("join", "POST", f"{BASE}/room/join")
    if status != 201:
        raise SystemExit(f"join answered {status}: {joined}")
    person = Person(joined["place"])
    bearer = f"authorization: Bearer {person.place}\r\n"
    for _ in range(LOOKS):
        _, told = await line.ask("status", "GET", f"{BASE}/room/status", headers=bearer)
        if told.get("state") == "active":
            break
        await asyncio.sleep(0.05)
    status, claimed = await line.ask("claim", "POST", f"{BASE}/room/claim", headers=bearer)
    if status != 201:
        raise SystemExit(f"claim answered {status}: {claimed}")
    person.visit = claimed["pass"]
    return person


async def hold(line: Line, person: Person, seats: list[str], step: str = "hold") -> tuple[int, dict[str, Any]]:
    visit = f"frontrow-pass: {person.visit}\r\n"
    return await line.ask(step, "POST", f"{BASE}/holds", {"seats": seats}, visit)


async def enter_all(door: Door, count: int) -> None:
    """People for the routes' benchmark, one of whom takes the seat that the others are refused."""

    async def each(line: Line, _: int) -> None:
        door.people.append(await enter(line))

    times = Times()
    await in_parallel(range(count), each, door.port, 16, times)
    line = Line("127.0.0.1", door.port, times)
    door.taken = groups_of(door.plan)[0][0]
    status, told = await hold(line, door.people[1], [door.taken])
    if status not in (201, 409):
        raise SystemExit(f"hold answered {status}: {told}")
    line.close()


async def buy_all(door: Door, parts: dict[str, int]) -> dict[str, Any]:
    """Sell every group that is free; bookings, times and CPU."""
    times, done, odd = Times(), [0, 0], []
    groups = groups_of(door.plan)[1:]
    random.Random(7).shuffle(groups)
    sold: list[list[str]] = []
    chance = random.Random(11)

    async def each(line: Line, seats: list[str]) -> None:
        person = await enter(line)
        if sold and chance.random() < CONTENTION:
            status, _ = await hold(line, person, chance.choice(sold), "refused")
            if status != 409:
                odd.append(status)
        status, held = await hold(line, person, seats)
        if status != 201:
            odd.append((status, held.get("code")))
            return
        proofs = f"frontrow-pass: {person.visit}\r\nfrontrow-booking: {held['booking_token']}\r\n"
        status, paid = await line.ask(
            "pay", "POST", f"/v1/bookings/{held['booking']}/pay", {"method": "pm_card_visa"}, proofs
        )
        if status != 200 or paid["state"] != "confirmed":
            odd.append((status, paid.get("code")))
            return
        sold.append(seats)
        done[0] += 1
        done[1] += len(seats)

    async with cpu_of(parts) as cpu:
        await in_parallel(groups, each, door.port, LINES, times)
    if odd:
        print(f"odd answers: {len(odd)}, for example {odd[:3]}")
    return {"bookings": done[0], "seats": done[1], "odd": len(odd), "cpu_s": cpu, "steps": times.table()}


def textbook(postgres: Postgres, plan: Plan, count: int) -> dict[str, Any]:
    """The same holds and payments by the textbook's server; no waiting room, no provider, no tickets, no audit."""
    groups = groups_of(plan)[:count]
    asyncio.run(textbook_tables(postgres.url, [seat for seats in groups for seat in seats]))
    times, done = Times(), [0, 0]
    random.Random(7).shuffle(groups)

    async def each(line: Line, seats: list[str]) -> None:
        status, held = await line.ask("hold", "POST", "/holds", {"fan": seats[0], "seats": seats})
        if status == 201:
            status, _ = await line.ask("pay", "POST", f"/bookings/{held['booking']}/pay")
        if status == 200:
            done[0] += 1
            done[1] += len(seats)

    async def run(pid: int, port: int) -> dict[str, float]:
        async with cpu_of({"server": pid, "postgres": postgres.pid}) as cpu:
            await in_parallel(groups, each, port, LINES, times)
        return cpu

    with server("bench.api_servers", "fastapi", postgres.url) as (pid, port):
        cpu = asyncio.run(run(pid, port))
    return {"bookings": done[0], "seats": done[1], "cpu_s": cpu, "steps": times.table()}
