"""`make bench-api`: what the whole platform costs over HTTP, on this machine, in one run of about eleven minutes.

1. Server CPU per request of every hot route, by fast path and framework, as a ratio to a bare ASGI hello.
2. Requests a second (wrk where it is installed, else our own generator).
3. A stadium sold out over HTTP on Redis and PostgreSQL: time, latency by step, CPU by part; another one with passes
   signed by EdDSA; a textbook (SELECT FOR UPDATE) in FastAPI and in Django on the same PostgreSQL; pretix' cart with
   `--pretix`.
4. Goodput when ten times too much is asked.
5. Live streams at 18,000 viewers.

It ends with the figures that have a target. Results: bench/out/api.json and api.png; `python -m bench.api_report`
writes them into docs/api-performance.md.
"""

import argparse
import asyncio
import itertools
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from bench.api_overload import overload
from bench.api_routes import BASE, EVENT, ApiServer, fill, routes, seats_for, show, wrk
from bench.api_sale import buy_all, groups_of, show_sale, textbook
from bench.api_servers import platform, put_on_sale
from bench.api_streams import platform_streams
from bench.django_peer import django_server, python_with_django
from bench.http_load import server
from bench.measure import OUT, Target, bar_plot, report
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.settings.overload import OverloadSettings
from tests.support.servers import Postgres, Valkey

ROUTE_SEATS = 20_000
SALES = 2  # of each kind; the cheaper one counts
STEPS = 21  # of a round: a hello, and at each of two servers nine routes and the calls about bookings


class Run:
    """One run: what was chosen, what was found, and a bar that shows how far it is."""

    def __init__(self, chosen: argparse.Namespace, bar: Progress) -> None:
        self.chosen, self.bar = chosen, bar
        self.told: dict[str, Any] = {"generator": "wrk" if shutil.which("wrk") else "bench.http_load"}
        self.plan = generate("stadium", chosen.seats)
        parts = chosen.rounds * STEPS + 2 * SALES * len(groups_of(self.plan)) // 100
        self.whole = bar.add_task("starting", total=parts)

    def step(self, name: str, count: float = 1) -> None:
        self.bar.update(self.whole, description=name, advance=count)

    def hot_routes(self, home: Path, valkey: Valkey, postgres: Postgres, plan: Plan) -> None:
        """No jobs in either server: what is sold here is told to nobody, so that a request's cost is its own."""
        chosen = self.chosen
        folders = {hot: home / f"hot-{hot}" for hot in (True, False)}  # a payment provider each
        for folder in folders.values():
            folder.mkdir()
        hot_one, cold_one = (
            platform(folder, valkey.url, postgres.url, hot=hot, jobs=False, event=EVENT)
            for hot, folder in folders.items()
        )
        with server("bench.room_servers", "hello") as hello, hot_one as hot, cold_one as cold:
            api_servers = {"hot": ApiServer(*hot), "app": ApiServer(*cold)}
            seats_for(plan, api_servers)
            best = routes(api_servers, hello, chosen.requests, chosen.bookings, chosen.rounds, self.step)
            self.told["routes"] = show(best)
            self.told["hello_us"] = best.cpu_us["hello"]["bare"]
            paths = {"hello": (hello[1], "/")}
            for name in ("/room/now-serving", "/seats.bin", ""):
                paths[f"event{name}"] = (hot[1], BASE.decode() + name)
            self.told["wrk_per_s"] = {name: wrk(*ask) for name, ask in paths.items()}
            if shutil.which("wrk"):
                print(f"\nwrk, requests a second: {self.told['wrk_per_s']}")

    def sale(self, postgres: Postgres, valkey: Valkey, hot: tuple[int, int], plan: Plan, signature: str) -> None:
        self.step("selling out", 0)
        parts = {"server": hot[0], "postgres": postgres.pid, "redis": valkey.pid}
        sold = asyncio.run(buy_all(hot[1], plan, parts, lambda: self.step("selling out", 0.01)))
        self.keep_cheaper("sale" if signature == "RS256" else f"sale_{signature}", sold)
        show_sale(f"Frontrow, fast path, Redis and PostgreSQL, passes signed by {signature}", sold)

    def keep_cheaper(self, name: str, sale: dict[str, Any]) -> None:
        """Of several sales the one that cost the server least: neighbours of a shared machine slow the others down."""
        best = self.told.get(name)
        if best is None or _server_us(sale) < _server_us(best):
            self.told[name] = sale

    def peers(self, postgres: Postgres) -> None:
        count = self.chosen.textbook
        self.step("textbook: FastAPI", 0)
        fastapi = server("bench.api_servers", "fastapi", postgres.url)
        told = textbook(postgres, self.plan, count, fastapi)
        self.keep_cheaper("textbook", told)
        show_sale("textbook: FastAPI, SELECT FOR UPDATE (hold and pay only)", told)
        self.step("textbook: Django", 0)
        python = python_with_django()
        if python is not None:
            told = textbook(postgres, self.plan, count // 2, django_server(python, postgres.url))
            self.keep_cheaper("django", told)
            show_sale("textbook: Django, select_for_update (hold and pay only)", told)
        if self.chosen.pretix:
            from bench.pretix_peer import holds

            self.step("pretix", 0)
            self.told["pretix"] = holds()
            print(f"\npretix, its cart: {self.told['pretix']}")

    def overload(self, home: Path, valkey: Valkey, postgres: Postgres, plan: Plan) -> None:
        """With the bounds that a server has unless told otherwise."""
        self.step("ten times too much", 0)
        lag_ms = OverloadSettings().max_lag_ms
        with platform(home, valkey.url, postgres.url, jobs=False, event=EVENT, max_lag_ms=lag_ms) as (pid, port):
            api_server = ApiServer(pid, port, seats=list(plan.seat_ids)[:20])
            self.told["overload"] = overload(api_server, asyncio.run(fill(api_server, 8)))


def _server_us(sale: dict[str, Any]) -> float:
    return float(sale["cpu_s"]["server"]) / max(1, sale["bookings"]) * 1e6


def measure(run: Run) -> None:
    plan = generate("stadium", ROUTE_SEATS)
    with tempfile.TemporaryDirectory() as folder, Valkey() as valkey, Postgres() as postgres:
        migrate(postgres.url)
        asyncio.run(put_on_sale(postgres.url, plan, EVENT, max_per_person=100))
        run.hot_routes(Path(folder), valkey, postgres, plan)
        run.overload(Path(folder), valkey, postgres, plan)
    for _, signature in itertools.product(range(SALES), ("EdDSA", "RS256")):
        with tempfile.TemporaryDirectory() as folder, Valkey() as valkey, Postgres() as postgres:
            migrate(postgres.url)
            asyncio.run(put_on_sale(postgres.url, run.plan))
            signing = {"FRONTROW_ROOM_PASS_ALGORITHM": signature}
            with platform(Path(folder), valkey.url, postgres.url, **signing) as hot:
                run.sale(postgres, valkey, hot, run.plan, signature)
            if signature == "RS256":
                run.peers(postgres)
    run.step("live streams", 0)
    run.told["streams"] = platform_streams(run.chosen.streams)


def targets(told: dict[str, Any]) -> list[Target]:
    """What a purchase, its requests and a stream may cost."""
    found = [
        Target(f"{row['route']}, fast path, × hello", row["hot_ratio"], row["wanted_ratio"], more_is_better=False)
        for row in told["routes"]
        if row["wanted_ratio"] is not None
    ]
    textbook_us = _server_us(told["textbook"])  # of a shop that only holds and pays, and signs nothing
    for key, signature, wanted in (("sale", "RS256", 1.0), ("sale_EdDSA", "EdDSA", 0.8)):
        name = f"a whole booking with {signature}, server CPU × the FastAPI textbook"
        found.append(Target(name, _server_us(told[key]) / textbook_us, wanted, more_is_better=False))
    sale = told["sale"]
    found.append(Target("bookings/s over HTTP, one server", sale["bookings"] / sale["cpu_s"]["wall"], 1_000))
    found.append(Target("goodput at ten times the crowd, %", 100 * told["overload"]["kept"], 90))
    for kind in ("room", "seats"):
        row = told["streams"][kind]
        found.append(Target(f"stream of the {kind}, bytes per viewer", row["bytes_each"], 5_000, more_is_better=False))
        found.append(Target(f"stream of the {kind}, µs per broadcast", row["cpu_us_each"], 10, more_is_better=False))
    return found


def picture(told: dict[str, Any]) -> Path:
    floor = {"bare hello": told["hello_us"]}
    groups = {
        row["route"]: {"Frontrow, fast path": row["hot_us"], "Frontrow, framework": row["app_us"]} | floor
        for row in told["routes"]
    }
    return bar_plot("api", "Server CPU per request", groups, "µs")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seats", type=int, default=50_000)
    options.add_argument("--requests", type=int, default=6_000)
    options.add_argument("--bookings", type=int, default=600, help="of each round and server")
    options.add_argument("--rounds", type=int, default=8)
    options.add_argument("--streams", type=int, default=18_000)
    options.add_argument("--textbook", type=int, default=4_000, help="bookings of the textbook")
    options.add_argument("--pretix", action="store_true", help="pretix too; it is installed the first time")
    chosen = options.parse_args()
    began_s = time.monotonic()
    columns = (TextColumn("{task.description:24}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        run = Run(chosen, bar)
        measure(run)
    told = run.told
    told["took_s"], told["load"] = time.monotonic() - began_s, os.getloadavg()[1]
    report("api", told, targets(told))
    print(f"\n{told['took_s']:.0f} s; written to {OUT / 'api.json'} and {picture(told)}")


if __name__ == "__main__":
    main()
