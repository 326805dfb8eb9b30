"""A message to 50,000 buyers, sent for real to an SMTP server, while tickets are sold and a worker is killed.

    python -m bench.buyer_mail [--buyers 50000] [--postgres] [--limit-s 900]

A server with its jobs inside is killed in the middle and started again. Prints how long it takes, what it costs, whom
the message reached and how often, what the organiser saw meanwhile, and how long the mails of a sale waited behind it.
Exits with 1 if somebody was left out, got it more often than the bound allows, or a mail of a sale came late.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
from aiosmtpd.controller import Controller

from bench.api_servers import SECRET
from bench.measure import OUT
from frontrow.app.wiring import Platform, open_platform, read_settings
from frontrow.boxoffice.adapters.ledger.engine.group_commit import RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.messages.buyer_message_mail import PER_QUEUE, QUEUES
from frontrow.boxoffice.messages.deliveries import WORK_CLAIM_S
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.seats.formats.plan_document import plan_bytes, plan_hash
from frontrow.boxoffice.seats.model.venues import Plan, Venue, area
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.core.clock import US_PER_S
from frontrow.shared.money import Money
from tests.boxoffice.people.support import ORGANISER, member
from tests.support.servers import Postgres, Valkey, free_port

DAY_US = 86_400 * US_PER_S
BIG, SMALL = "evt_big", "evt_small"  # the message goes to the buyers of the one; the other is on sale meanwhile
SALES = 400  # mails of a sale that can be asked for
SALE_EVERY_S = 0.5
LOCALES = ("en", "de", "fr", "es", "pt", "ja", "ar")
BATCH = 2_000
TARGET_SALE_S = 10.0  # a confirmation, at the 95th percentile, while the server runs
TEXT = (
    "Dear {name},\n\nthe doors open at **18:00**, an hour earlier. Please use gate B.\n\n- [Map](https://x.example)\n"
)


class Mails:
    """A real SMTP server that counts: which address got which mail, and when."""

    def __init__(self) -> None:
        self.got: dict[str, list[float]] = collections.defaultdict(list)
        self.ids: dict[str, set[str]] = collections.defaultdict(set)
        self.connections = 0
        self._lock = threading.Lock()
        self._controller = Controller(self, hostname="127.0.0.1", port=free_port())

    async def handle_EHLO(self, server: Any, session: Any, envelope: Any, hostname: str, responses: Any) -> Any:  # noqa: N802
        session.host_name = hostname
        self.connections += 1
        return responses

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        found = re.search(rb"^Message-ID: (\S+)", envelope.content[:4_000], re.MULTILINE)
        with self._lock:
            self.got[envelope.rcpt_tos[0]].append(time.monotonic())
            self.ids[envelope.rcpt_tos[0]].add(found[1].decode() if found else "")
        return "250 OK"

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self._controller.port}?from=tickets@example.org"

    def of_buyers(self) -> int:
        with self._lock:
            return sum(len(times) for to, times in self.got.items() if to.startswith("buyer"))

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()


async def put_buyers(platform: Platform, event_id: str, count: int, word: str) -> list[str]:
    """An event whose every place was sold, each to somebody else. The ids of the bookings."""
    now_us = platform.clock() - DAY_US
    plan = Plan(f"Field {word}", (area("GA", count),))
    digest = plan_hash(plan)
    await platform.ledger.catalogue.put_plan(digest, plan, plan_bytes(plan).decode(), now_us)
    await platform.ledger.catalogue.put_venue(
        Venue(f"ven_{word}", "Field", digest, "Vienna", "AT", "Europe/Vienna"), now_us
    )
    starts_us = now_us + 30 * DAY_US
    event = Event(
        event_id,
        "Aurora",
        f"ven_{word}",
        digest,
        "EUR",
        starts_us,
        now_us,
        starts_us,
        tuple(PriceTier(key, Money(5_000, "EUR")) for key in plan.tiers),
        EventStatus.ON_SALE,
        organiser_id=ORGANISER,
    )
    await platform.ledger.catalogue.put_event(event, now_us)
    issuer: Issuer = platform.box_office.checkout.driver._issuer
    for start in range(0, count, BATCH):
        seats = range(start, min(start + BATCH, count))
        await _sell(platform, event_id, word, seats, issuer, now_us)
    return [f"bkg_{word}{seat:06d}" for seat in range(count)]


async def _sell(platform: Platform, event_id: str, word: str, seats: range, issuer: Issuer, now_us: int) -> None:
    async def run(*queries: Query) -> Any:
        return await platform.ledger.line.submit(RunStatements(queries, now_us=now_us))

    ids = {seat: f"bkg_{word}{seat:06d}" for seat in seats}
    expires_us = now_us + DAY_US // 48
    rows = [
        (ids[seat], event_id, f"fan_{word}{seat}", 1, str([seat]), 5_000, "EUR", "", now_us, expires_us, "")
        for seat in seats
    ]
    await run(Query("take_free_seats", [(event_id, seat, ids[seat], 5_000) for seat in seats]))
    fences = dict(await run(Query("add_bookings", rows)))
    for before, after in (("held", "paying"), ("paying", "confirmed")):
        await run(
            Query("move_bookings", [(ids[n], fences[ids[n]], before, after, now_us, expires_us, 0) for n in seats])
        )
    tickets = []
    for seat in seats:
        about = (event_id, f"fan_{word}{seat}", BookingState.PAYING, fences[ids[seat]], (seat,), 5_000, "EUR", "")
        (ticket,) = issuer.issue(Booking(ids[seat], *about, now_us, now_us, now_us))
        tickets.append((ticket.id, ids[seat], event_id, seat, ticket.code, now_us))
    await run(Query("add_tickets", tickets))
    people = [
        (f"fan_{word}{n}", LOCALES[n % 7], f"{word}{n}@example.org", "", '["email"]', f"Ada {n}", f"ada {n}", now_us)
        for n in seats
    ]
    await run(Query("put_contacts", people))


class Shop:
    """`frontrow serve` with its jobs inside, which can be killed and started again."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder, self._env = folder, env
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        self.peak_mb, self.cpu_s = 0.0, 0.0

    def start(self) -> None:
        command = [sys.executable, "-m", "frontrow.cli.main", "serve", "--port", "0", "--folder", str(self._folder)]
        with (self._folder / "server.log").open("ab") as errors:
            process = subprocess.Popen(command, env=self._env, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        line = ""
        while "http://" not in line:
            line = process.stdout.readline()
            if not line:
                raise SystemExit((self._folder / "server.log").read_text()[-2000:])
        port = line.partition("http://")[2].partition(":")[2].split("/")[0].split()[0]
        self.url = f"http://127.0.0.1:{int(port)}"
        self._process = process

    def look(self) -> None:
        """Note how large it is."""
        assert self._process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            seen = psutil.Process(self._process.pid)
            self.peak_mb = max(self.peak_mb, seen.memory_info().rss / 2**20)
            times = seen.cpu_times()
            self._now_s = times.user + times.system

    def end(self, *, kill: bool = False) -> None:
        assert self._process is not None
        self.look()
        self.cpu_s += self._now_s
        (self._process.kill if kill else self._process.terminate)()
        self._process.communicate(timeout=60)


async def prepare(folder: Path, env: dict[str, str], buyers: int) -> tuple[dict[str, str], list[str]]:
    """Buyers, and an owner who is signed in. Returns the owner and the bookings that a sale writes mails about."""
    settings = read_settings(None, env, folder=str(folder), jobs_inside=True)
    async with open_platform(settings) as platform:
        owner = await member(platform, Role.OWNER)
        await put_buyers(platform, BIG, buyers, "buyer")
        return owner.bearer, await put_buyers(platform, SMALL, SALES, "sale")


async def send_and_watch(
    shop: Shop, mails: Mails, bearer: dict[str, str], sales: list[str], buyers: int, limit_s: float
) -> dict[str, Any]:
    """Send the message, ask for mails of a sale meanwhile, kill the server in the middle; what happened."""
    at = f"/v1/organiser/events/{BIG}/messages"
    asked_s: dict[str, float] = {}
    progress_ms: list[float] = []
    async with httpx.AsyncClient(timeout=30, headers=bearer) as client:
        began_s = time.monotonic()
        body = {"subject": "Doors of {event}", "text": TEXT, "audience": {"kind": "all", "key": ""}}
        sent = (await client.post(shop.url + at, json=body)).raise_for_status().json()
        asked_ms, killed_s, seen, left = (time.monotonic() - began_s) * 1e3, 0.0, sent, list(enumerate(sales))
        while seen["state"] != "sent" and time.monotonic() - began_s < limit_s:
            await asyncio.sleep(SALE_EVERY_S)
            shop.look()
            if not killed_s and mails.of_buyers() > 0.4 * buyers:
                killed_s = time.monotonic()
                shop.end(kill=True)
                shop.start()
            with contextlib.suppress(httpx.TransportError):
                if left:
                    number, booking = left.pop(0)
                    asked_s[f"sale{number}@example.org"] = time.monotonic()
                    one = f"{shop.url}/v1/organiser/events/{SMALL}/bookings/{booking}/resend"
                    (await client.post(one)).raise_for_status()
                before_s = time.monotonic()
                seen = (await client.get(f"{shop.url}{at}/{sent['message']}")).raise_for_status().json()
                progress_ms.append((time.monotonic() - before_s) * 1e3)
        took_s = time.monotonic() - began_s
        await asyncio.sleep(2 * SALE_EVERY_S)
    waits = [mails.got[to][0] - at_s for to, at_s in asked_s.items() if mails.got.get(to)]
    # A queue that the dead server had claimed is worked on again when the claim ends.
    struck = [to for to, at_s in asked_s.items() if killed_s and abs(at_s - killed_s) < WORK_CLAIM_S]
    usual = [mails.got[to][0] - at_s for to, at_s in asked_s.items() if mails.got.get(to) and to not in struck]
    usual = usual if len(usual) > 1 else waits  # a short run
    times = [len(mails.got.get(f"buyer{n}@example.org", ())) for n in range(buyers)]
    return {
        "state": seen["state"],
        "took_s": took_s,
        "begun_ms": asked_ms,
        "mails_per_s": buyers / took_s,
        "told": {name: seen[name] for name in ("recipients", "sent", "failed", "waiting")},
        "left_out": times.count(0),
        "twice": sum(one > 1 for one in times),
        "more_than_twice": sum(one > 2 for one in times),
        "copies_under_another_id": sum(len(mails.ids[f"buyer{n}@example.org"]) > 1 for n in range(buyers)),
        "sale_mails": len(asked_s),
        "sale_mails_lost": len(asked_s) - len(waits),
        "sale_p50_s": statistics.median(usual),
        "sale_p95_s": statistics.quantiles(usual, n=20)[-1],
        "sale_max_s": max(waits),
        "progress_p95_ms": statistics.quantiles(progress_ms, n=20)[-1],
        "connections": mails.connections,
    }


@contextlib.contextmanager
def stores(folder: Path, *, postgres: bool) -> Iterator[dict[str, str]]:
    if not postgres:
        yield {}
        return
    with Valkey() as valkey, Postgres() as server:
        migrate(server.url)
        yield {"FRONTROW_REDIS_URL": valkey.url, "FRONTROW_LEDGER_URL": server.url}


def run(buyers: int, *, postgres: bool, limit_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as made, Mails() as mails, stores(Path(made), postgres=postgres) as urls:
        folder = Path(made)
        env = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
        env |= {"FRONTROW_SECRET_KEY": SECRET, "FRONTROW_SERVER_DEMO": "true", "FRONTROW_MAIL_URL": mails.url, **urls}
        filled_s = time.monotonic()
        bearer, sales = asyncio.run(prepare(folder, env, buyers))
        filled_s = time.monotonic() - filled_s
        shop = Shop(folder, env)
        shop.start()
        try:
            figures = asyncio.run(send_and_watch(shop, mails, bearer, sales, buyers, limit_s))
        finally:
            shop.end()
    figures |= {"buyers": buyers, "ledger": "PostgreSQL" if postgres else "SQLite", "filled_s": filled_s}
    return figures | {"peak_mb": shop.peak_mb, "cpu_ms_per_mail": shop.cpu_s / buyers * 1e3}


def failures(figures: dict[str, Any]) -> list[str]:
    """What must hold and did not."""
    bound = QUEUES * PER_QUEUE
    return [
        text
        for text, wrong in (
            ("the message was not done in time", figures["state"] != "sent"),
            (f"{figures['left_out']} buyers were left out", figures["left_out"]),
            (f"{figures['twice']} got it twice, more than {bound}", figures["twice"] > bound),
            ("somebody got it three times", figures["more_than_twice"]),
            ("a copy had another Message-ID", figures["copies_under_another_id"]),
            ("a mail of the sale was lost", figures["sale_mails_lost"]),
            (f"mails of the sale took {figures['sale_p95_s']:.1f} s", figures["sale_p95_s"] > TARGET_SALE_S),
        )
        if wrong
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buyers", type=int, default=50_000)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--limit-s", type=float, default=900)
    asked = parser.parse_args()
    figures = run(asked.buyers, postgres=asked.postgres, limit_s=asked.limit_s)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"buyer_mail_{figures['ledger'].lower()}.json").write_text(json.dumps(figures, indent=1))
    print(json.dumps(figures, indent=1))
    wrong = failures(figures)
    print("\n".join(wrong) or "all held")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
