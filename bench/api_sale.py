"""A stadium sold out over HTTP: everybody joins, looks, claims, holds and pays; and a textbook doing the same."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.api_servers import EVENT, textbook_tables
from bench.api_wire import Line, Times, cpu_of, in_parallel
from frontrow.boxoffice.seats.model.venues import Plan
from tests.support.servers import Postgres

BASE = f"/v1/events/{EVENT}"
LINES = 384  # with 128 the server rests a third of the time, because each buyer waits for the room to let them in
GROUP = 4
LOOKS = 2_000
CONTENTION = 0.2  # of the buyers first want seats that somebody has


@dataclass
class Person:
    place: str
    visit: str = ""


def groups_of(plan: Plan) -> list[list[str]]:
    """The seats in groups that are bought together, neighbours in the plan's order."""
    ids = list(plan.seat_ids)
    return [ids[at : at + GROUP] for at in range(0, len(ids), GROUP)]


async def enter(line: Line, base: str = BASE) -> Person:
    """join → status → claim."""
    status, joined = await line.ask("join", "POST", f"{base}/room/join")
    if status != 201:
        raise SystemExit(f"join answered {status}: {joined}")
    person = Person(joined["place"])
    bearer = f"authorization: Bearer {person.place}\r\n"
    for _ in range(LOOKS):
        _, told = await line.ask("status", "GET", f"{base}/room/status", headers=bearer)
        if told.get("state") == "active":
            break
        await asyncio.sleep(0.05)
    status, claimed = await line.ask("claim", "POST", f"{base}/room/claim", headers=bearer)
    if status != 201:
        raise SystemExit(f"claim answered {status}: {claimed}")
    person.visit = claimed["pass"]
    return person


async def hold(line: Line, person: Person, seats: list[str], step: str = "hold") -> tuple[int, dict[str, Any]]:
    visit = f"frontrow-pass: {person.visit}\r\n"
    return await line.ask(step, "POST", f"{BASE}/holds", {"seats": seats}, visit)


async def buy_all(port: int, plan: Plan, parts: dict[str, int], sold_one: Callable[[], None]) -> dict[str, Any]:
    """Sell every group; bookings, times and CPU. `sold_one` is told of each booking."""
    times, done, odd = Times(), [0, 0], []
    groups = groups_of(plan)
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
        sold_one()

    async with cpu_of(parts) as cpu:
        await in_parallel(groups, each, port, LINES, times)
    if odd:
        print(f"odd answers: {len(odd)}, for example {odd[:3]}")
    return {"bookings": done[0], "seats": done[1], "odd": len(odd), "cpu_s": cpu, "steps": times.table()}


def textbook(
    postgres: Postgres, plan: Plan, count: int, running: "contextlib.AbstractContextManager[tuple[int, int]]"
) -> dict[str, Any]:
    """The same holds and payments by a textbook's server; no waiting room, no provider, no tickets, no audit."""
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

    with running as (pid, port):
        cpu = asyncio.run(run(pid, port))
    return {"bookings": done[0], "seats": done[1], "cpu_s": cpu, "steps": times.table()}


WANTED_PER_S = 3_000  # confirmed bookings, on as many processes as that takes


def cores_text(sale: dict[str, Any]) -> str:
    """What a core of servers confirms, and how many cores of each kind so many bookings per second take."""
    each_s = {part: seconds / sale["bookings"] for part, seconds in sale["cpu_s"].items() if part != "wall"}
    cores = ", ".join(f"{part} {WANTED_PER_S * one_s:.1f}" for part, one_s in each_s.items())
    return (
        f"One core of servers confirms {1 / each_s['server']:,.0f} bookings/s; {WANTED_PER_S:,} bookings/s take these "
        f"cores: {cores}."
    )


def show_sale(name: str, sale: dict[str, Any]) -> None:
    cpu = sale["cpu_s"]
    print(f"\n{name}: {sale['seats']:,} seats in {sale['bookings']:,} bookings, {cpu['wall']:.1f} s")
    print(f"  {sale['bookings'] / cpu['wall']:,.0f} bookings/s, {sale['seats'] / cpu['wall']:,.0f} seats/s")
    split = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in cpu.items() if part != "wall")
    print(f"  CPU: {split}; {cpu['server'] / sale['bookings'] * 1e6:,.0f} us of the server a booking")
    print(f"  {cores_text(sale)}")
    for step, row in sale["steps"].items():
        print(f"  {step:8} {row['count']:8,}  p50 {row['p50_ms']:8.2f} ms  p99 {row['p99_ms']:8.2f} ms")
