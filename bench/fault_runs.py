"""Fault runs (F1, F5): two servers, a worker and a crowd of fans on real stores; something breaks; what do fans notice?

Each run breaks one thing, heals it, lets the crowd go on and then checks the history: no seat sold twice, no
acknowledged booking lost, money adds up, no answer 500, no answer after more than 10 s, no request without an answer
(unless its server was killed), nobody's position got worse, every confirmation mailed. It prints one line per run and
ends with exit code 1 if anything was wrong.

A server that has lost sight of the room answers with the window it saw last, so two servers can differ. Whoever asks
keeps the smallest number, as the pages do. A position got worse if ten answers in a row are above it.

    python -m bench.fault_runs                      # all runs
    python -m bench.fault_runs --only redis_reset   # one
"""

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.core.clock import SystemClock
from tests.boxoffice.plan_samples import small_plan
from tests.faults.proxy import Proxy
from tests.support.localstripe import PUBLISHABLE_KEY, SECRET_KEY, WEBHOOK_SECRET, LocalStripe
from tests.support.processes import Process
from tests.support.servers import Postgres, Sentinel, Standby, Valkey
from tests.web.api.support import EVENT_ID, put_into

FANS = 24
CALM_PURCHASES, FAULT_S, AFTER_S = 10, 8.0, 15.0
PROVIDER_AWAY_S = 12.0
LONGEST_S = 10.0
PATIENCE_S = 30.0
CHARGED = ("succeeded", "requires_capture")  # the provider's words for money taken, and money reserved for a sale
WORSE_ANSWERS = 10


@dataclass
class Record:
    """What the fans saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    strange: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    slowest: str = ""
    lag_s: float = 0.0  # of the crowd itself: on a busy machine it is part of every wait
    older: int = 0  # answers of a server that knew less than the one before
    worse: int = 0
    bought: dict[str, list[str]] = field(default_factory=dict)
    confirmed_at_s: list[float] = field(default_factory=list)
    unanswered: Counter[int] = field(default_factory=Counter)  # connections that ended without an answer, by server
    broken_off: str = ""  # how the last of them ended


class Rig:
    """The stores, each server's way to them, the servers and the worker."""

    def __init__(self, folder: Path, postgres: Postgres, valkey: Valkey) -> None:
        self.folder, self.postgres, self.valkey = folder, postgres, valkey
        self.redis_ways: list[Proxy] = []
        self.ledger_ways: list[Proxy] = []
        self.servers: list[Process] = []
        self.worker: Process | None = None
        self.redis_url = ""  # instead of each server's way
        self.ledger_url = ""
        self.standby: Standby | None = None
        self.stripe: LocalStripe | None = None
        self.stripe_way: Proxy | None = None

    def env(self, number: int) -> dict[str, str]:
        redis = self.redis_url or f"redis://127.0.0.1:{self.redis_ways[number].port}/0"
        return {
            "FRONTROW_REDIS_URL": redis,
            "FRONTROW_LEDGER_URL": self.ledger_url
            or f"postgresql://postgres@127.0.0.1:{self.ledger_ways[number].port}/postgres",
            "FRONTROW_SERVER_JOBS_INSIDE": "false",
            "FRONTROW_MAIL_URL": str(self.folder / "mails"),
            "FRONTROW_ROOM_HUMAN": "none",  # the crowd are programs
        } | self._stripe_env()

    def _stripe_env(self) -> dict[str, str]:
        if self.stripe_way is None:
            return {}
        return {
            "FRONTROW_STRIPE_KEY": SECRET_KEY,
            "FRONTROW_STRIPE_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "FRONTROW_STRIPE_PUBLISHABLE_KEY": PUBLISHABLE_KEY,
            "FRONTROW_STRIPE_API": f"http://127.0.0.1:{self.stripe_way.port}",
        }

    def machine(self, number: int) -> Path:
        folder = self.folder / f"machine-{number}"
        folder.mkdir(exist_ok=True)
        bank = folder / "payments.jsonl"
        if not bank.is_symlink():
            bank.symlink_to(self.folder / "bank.jsonl")
        return folder

    async def start(self) -> None:
        for number in range(2):
            server = Process(["serve", "--port", "0"], self.machine(number), **self.env(number))
            self.servers.append(server)
        self.worker = Process(["work"], self.machine(2), **self.env(2))
        for server in self.servers:
            server.listening()
            await server.ready()


class Fan:
    """Buys again and again at one server or the other, as somebody new each time; asks again after a 503."""

    def __init__(self, number: int, rig: Rig, record: Record) -> None:
        self._random, self._rig, self._record, self._number = random.Random(number), rig, record, number
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        turn = 0
        limits = httpx.Limits(max_connections=4)
        async with httpx.AsyncClient(timeout=40, limits=limits) as client:
            while not self._stopped:
                turn += 1
                with contextlib.suppress(GaveUp):
                    await self._buy(client, f"{self._number}-{turn}")

    async def _ask(self, client: httpx.AsyncClient, method: str, path: str, key: str, **more: Any) -> httpx.Response:
        """Ask until there is an answer that is not 503."""
        headers = {"Idempotency-Key": key} | more.pop("headers", {})
        for _ in range(200):
            number = self._random.randrange(len(self._rig.servers))
            server = self._rig.servers[number]
            began_s = time.monotonic()
            try:
                answer = await client.request(method, server.url + path, headers=headers, **more)
            except httpx.TransportError as error:
                self._record.unanswered[number] += 1
                self._record.broken_off = f"{method} {path.rpartition('/')[2]}: {error!r}"
                await asyncio.sleep(0.2)
                continue
            took_s = time.monotonic() - began_s
            if took_s > self._record.longest_s:
                self._record.longest_s, self._record.slowest = took_s, f"{method} {path.rpartition('/')[2]}"
            self._record.statuses[answer.status_code] += 1
            if answer.status_code == 500 or (answer.status_code == 503 and "retry-after" not in answer.headers):
                self._record.strange.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            if answer.status_code not in (500, 502, 503) and answer.json().get("code") != "idempotency_running":
                return answer
            if self._stopped:
                raise GaveUp
            await asyncio.sleep(min(1.0, float(answer.headers.get("retry-after", 1))))
        raise GaveUp

    async def _buy(self, client: httpx.AsyncClient, name: str) -> None:
        event = f"/v1/events/{EVENT_ID}"
        joined = await self._ask(client, "POST", f"{event}/room/join", f"{name}-join")
        place = {"Authorization": f"Bearer {joined.json()['place']}"}
        await self._wait(client, f"{event}/room/status", name, place)
        claimed = await self._ask(client, "POST", f"{event}/room/claim", f"{name}-claim", headers=place)
        if claimed.status_code != 201:
            raise GaveUp
        shop = {"Frontrow-Pass": claimed.json()["pass"]}
        wish = {"best": {"count": self._random.choice((1, 1, 2))}}
        held = await self._ask(client, "POST", f"{event}/holds", f"{name}-hold", headers=shop, json=wish)
        if held.status_code != 201:
            raise GaveUp
        body = held.json()
        own = shop | {"Frontrow-Booking": body["booking_token"]}
        if self._random.random() < 0.3:  # changes their mind
            await self._ask(client, "DELETE", f"/v1/bookings/{body['booking']}/hold", f"{name}-free", headers=own)
            return
        pay = {"method": "pm_card_visa", "email": f"fan{name}@example.org"}
        path = f"/v1/bookings/{body['booking']}"
        paid = await self._ask(client, "POST", f"{path}/pay", f"{name}-pay", headers=own, json=pay)
        for _ in range(100):
            if paid.status_code == 200 and paid.json().get("state") == "confirmed":
                self._record.bought[body["booking"]] = body.get("seats", [])
                self._record.confirmed_at_s.append(time.monotonic())
                return
            if paid.status_code in (402, 409, 410, 404) or self._stopped:
                return
            await asyncio.sleep(0.2)
            paid = await self._ask(client, "GET", path, name, headers=own)

    async def _wait(self, client: httpx.AsyncClient, path: str, name: str, place: dict[str, str]) -> None:
        """Until it is this fan's turn."""
        least, above = sys.maxsize, 0
        for _ in range(2_000):
            status = (await self._ask(client, "GET", path, name, headers=place)).json()
            ahead = status.get("ahead")
            if ahead is not None:
                above = above + 1 if ahead > least else 0
                self._record.older += ahead > least
                self._record.worse += above == WORSE_ANSWERS
                least = min(least, ahead)
            if status.get("state") == "active":
                return
            if status.get("state") == "expired" or self._stopped:
                raise GaveUp
            await asyncio.sleep(0.1)


class GaveUp(Exception):
    """The fan goes home."""


Act = Callable[[Rig], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """Breaks something for a while."""

    name: str
    run: Act
    sentinel: bool = False
    standby: bool = False
    disk_mb: int = 0  # a disk of its own for PostgreSQL
    hold_s: int = 300
    kills_server: bool = False  # the first one; whoever was asking it gets no answer
    stripe: bool = False  # payments go to a Stripe of this machine
    again_within_s: float = float("inf")  # the first sale after healing
    hands_over: bool = False  # to a shop on another domain: `bench.hand_over_faults`


async def nothing(rig: Rig) -> None:
    await asyncio.sleep(FAULT_S)


async def redis_reset(rig: Rig) -> None:
    for _ in range(int(FAULT_S / 0.25)):
        rig.redis_ways[0].reset()
        await asyncio.sleep(0.25)


async def redis_cut_off(rig: Rig) -> None:
    rig.redis_ways[0].blackhole()
    await asyncio.sleep(FAULT_S)
    rig.redis_ways[0].swallowing = False
    rig.redis_ways[0].reset()


async def redis_killed(rig: Rig) -> None:
    rig.valkey.kill()
    await asyncio.sleep(2)
    rig.valkey.start()


async def redis_wiped(rig: Rig) -> None:
    rig.valkey.command("FLUSHALL")


async def redis_paused(rig: Rig) -> None:
    rig.valkey.pause()
    await asyncio.sleep(FAULT_S)
    rig.valkey.resume()


async def redis_stale(rig: Rig) -> None:
    """It dies and comes back with what it knew some seconds ago."""
    rig.valkey.command("SAVE")
    dump = rig.valkey.folder / "dump.rdb"
    shutil.copy(dump, rig.folder / "old.rdb")
    await asyncio.sleep(FAULT_S / 2)
    rig.valkey.kill()
    shutil.copy(rig.folder / "old.rdb", dump)
    rig.valkey.start()


async def redis_read_only(rig: Rig) -> None:
    """It became somebody's replica, and is made a primary again."""
    with Valkey() as other:
        rig.valkey.command("CONFIG", "SET", "replica-serve-stale-data", "yes")
        rig.valkey.command("REPLICAOF", "127.0.0.1", other.port)
        await asyncio.sleep(FAULT_S)
        rig.valkey.command("REPLICAOF", "NO", "ONE")


async def server_restarted_without_redis(rig: Rig) -> None:
    rig.redis_ways[0].blackhole()
    rig.servers[0].kill()
    rig.servers[0].start()
    await asyncio.to_thread(rig.servers[0].listening)
    await asyncio.sleep(FAULT_S)
    rig.redis_ways[0].swallowing = False
    rig.redis_ways[0].reset()


async def ledger_cut_off(rig: Rig) -> None:
    rig.ledger_ways[0].blackhole()
    await asyncio.sleep(FAULT_S)
    rig.ledger_ways[0].swallowing = False
    rig.ledger_ways[0].reset()


async def ledger_reset(rig: Rig) -> None:
    for _ in range(int(FAULT_S / 0.5)):
        rig.ledger_ways[0].reset()
        await asyncio.sleep(0.5)


async def ledger_away(rig: Rig) -> None:
    for way in rig.ledger_ways:
        way.blackhole()
    await asyncio.sleep(25)
    for way in rig.ledger_ways:
        way.swallowing = False
        way.reset()


async def ledger_killed(rig: Rig) -> None:
    rig.postgres.kill()
    for _ in range(100):
        await asyncio.sleep(0.1)
        with contextlib.suppress(Exception):
            rig.postgres.start()
            return


async def ledger_locked(rig: Rig) -> None:
    """Somebody's transaction locks every booking and then does nothing."""
    with psycopg.connect(rig.postgres.url) as frozen:
        frozen.execute("SELECT id FROM bookings FOR UPDATE")
        await asyncio.sleep(FAULT_S)


async def ledger_stopped(rig: Rig) -> None:
    """All its processes stand still and keep their connections open."""
    family = children_of(rig.postgres.pid)
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(FAULT_S)
    for pid in family:
        os.kill(pid, signal.SIGCONT)


def children_of(pid: int) -> list[int]:
    """The process and its children."""
    found = [pid]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


async def ledger_failed_over(rig: Rig) -> None:
    assert rig.standby is not None
    rig.postgres.kill()
    await asyncio.sleep(2)
    await asyncio.to_thread(rig.standby.promote)
    rig.postgres = rig.standby


async def ledger_disk_full(rig: Rig) -> None:
    """Something fills the disk; somebody clears it, and starts PostgreSQL again if it gave up."""
    filler = rig.postgres.folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:  # until the disk is full
            file.write(bytes(65_536))
    await asyncio.sleep(FAULT_S)
    filler.unlink()
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(rig.postgres.url, connect_timeout=2):
        return
    rig.postgres.stop()
    rig.postgres.start()


async def ledger_crowded(rig: Rig) -> None:
    """Somebody takes every connection, and ours are cut."""
    with contextlib.ExitStack() as others:
        with contextlib.suppress(psycopg.OperationalError):
            for _ in range(1_000):
                others.enter_context(psycopg.connect(rig.postgres.url))
        for way in rig.ledger_ways:
            way.reset()
        await asyncio.sleep(FAULT_S)


async def server_killed(rig: Rig) -> None:
    rig.servers[0].kill()
    await asyncio.sleep(1)
    rig.servers[0].start()
    await asyncio.to_thread(rig.servers[0].listening)
    await rig.servers[0].ready()


async def server_frozen(rig: Rig) -> None:
    """For longer than a hold lasts."""
    rig.servers[0].process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(FAULT_S)
    rig.servers[0].process.send_signal(signal.SIGCONT)


async def network_slow(rig: Rig) -> None:
    """Every piece between one server and its stores arrives late."""
    ways = (rig.redis_ways[0], rig.ledger_ways[0])
    for way in ways:
        way.late_s = 0.2
    await asyncio.sleep(FAULT_S)
    for way in ways:
        way.late_s = 0.0


async def clock_ahead(rig: Rig) -> None:
    """A server starts with its clock one hour ahead, and later with the right one."""
    await restart_with_clock(rig, 3_600)
    await asyncio.sleep(FAULT_S)
    await restart_with_clock(rig, 0)
    await rig.servers[0].ready()


async def clock_behind(rig: Rig) -> None:
    await restart_with_clock(rig, -3_600)
    await asyncio.sleep(FAULT_S)
    await restart_with_clock(rig, 0)
    await rig.servers[0].ready()


async def restart_with_clock(rig: Rig, ahead_s: int) -> None:
    rig.servers[0].kill()
    folder = rig.machine(0)
    rig.servers[0] = Process(
        ["serve", "--port", "0"],
        folder,
        program="tests.support.shifted_clock",
        SHIFT_S=str(ahead_s),
        PYTHONPATH=str(Path(__file__).parents[1]),
        **rig.env(0),
    )
    await asyncio.to_thread(rig.servers[0].listening)


async def worker_killed(rig: Rig) -> None:
    assert rig.worker is not None
    for _ in range(3):
        rig.worker.kill()
        rig.worker.start()
        await asyncio.sleep(3)


async def stripe_silent(rig: Rig) -> None:
    """It accepts and never answers. What was asked meanwhile is never answered afterwards either."""
    assert rig.stripe_way is not None
    rig.stripe_way.blackhole()
    await asyncio.sleep(PROVIDER_AWAY_S)
    rig.stripe_way.swallowing = False
    rig.stripe_way.keep_silent()


async def stripe_refuses(rig: Rig) -> None:
    assert rig.stripe_way is not None
    rig.stripe_way.refuse()
    await asyncio.sleep(PROVIDER_AWAY_S)
    await rig.stripe_way.accept_again()


async def sentinel_failover(rig: Rig) -> None:
    rig.valkey.kill()
    await asyncio.sleep(FAULT_S)


FAULTS = [
    Fault("nothing", nothing),
    Fault("redis_reset", redis_reset),
    Fault("redis_cut_off", redis_cut_off),
    Fault("redis_killed", redis_killed),
    Fault("redis_wiped", redis_wiped),
    Fault("redis_paused", redis_paused),
    Fault("redis_stale", redis_stale),
    Fault("redis_read_only", redis_read_only),
    Fault("sentinel_failover", sentinel_failover, sentinel=True),
    Fault("server_restarted_without_redis", server_restarted_without_redis, kills_server=True),
    Fault("server_killed", server_killed, kills_server=True),
    Fault("server_frozen", server_frozen, hold_s=5),
    Fault("network_slow", network_slow),
    Fault("clock_ahead", clock_ahead, kills_server=True),
    Fault("clock_behind", clock_behind, kills_server=True),
    Fault("worker_killed", worker_killed),
    Fault("stripe_silent", stripe_silent, stripe=True, again_within_s=5),
    Fault("stripe_refuses", stripe_refuses, stripe=True, again_within_s=5),
    Fault("ledger_cut_off", ledger_cut_off),
    Fault("ledger_reset", ledger_reset),
    Fault("ledger_away", ledger_away),
    Fault("ledger_killed", ledger_killed),
    Fault("ledger_locked", ledger_locked),
    Fault("ledger_crowded", ledger_crowded),
    Fault("ledger_stopped", ledger_stopped),
    Fault("ledger_failed_over", ledger_failed_over, standby=True),
    Fault("ledger_disk_full", ledger_disk_full, disk_mb=256),
    Fault("hand_over_nothing", nothing, hands_over=True),
    Fault("hand_over_redis_reset", redis_reset, hands_over=True),
    Fault("hand_over_redis_cut_off", redis_cut_off, hands_over=True),
    Fault("hand_over_redis_killed", redis_killed, hands_over=True),
    Fault("hand_over_redis_wiped", redis_wiped, hands_over=True),
    Fault("hand_over_redis_paused", redis_paused, hands_over=True),
    Fault("hand_over_redis_stale", redis_stale, hands_over=True),
    Fault("hand_over_redis_read_only", redis_read_only, hands_over=True),
    Fault("hand_over_sentinel_failover", sentinel_failover, sentinel=True, hands_over=True),
    Fault("hand_over_server_killed", server_killed, hands_over=True),
    Fault("hand_over_server_frozen", server_frozen, hands_over=True),
]


class SmallDisk(Postgres):
    """A PostgreSQL on a disk of its own that can be full. Mounting it needs root."""

    def __init__(self, megabytes: int, *options: str) -> None:
        self._megabytes = megabytes
        super().__init__(*options)

    def _make_cluster(self) -> None:
        size = f"size={self._megabytes}m,mode=755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", str(self.folder)], check=True)
        super()._make_cluster()

    def close(self) -> None:
        self.stop(signal.SIGKILL)
        subprocess.run(["umount", "-l", str(self.folder)], check=True)
        super().close()


def postgres_for(fault: Fault) -> Postgres:
    options = ["-c", "fsync=off", "-c", "max_connections=60"]
    if fault.disk_mb:
        return SmallDisk(fault.disk_mb, *options, "-c", "max_wal_size=64MB", "-c", "min_wal_size=32MB")
    return Postgres(*options)


async def follow(rig: Rig, standby: Standby) -> None:
    """A synchronous standby, and an address that names both."""
    with psycopg.connect(rig.postgres.url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        admin.execute("SELECT pg_reload_conf()")
        while ("sync",) not in admin.execute("SELECT sync_state FROM pg_stat_replication").fetchall():  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    rig.standby = standby
    rig.ledger_url = f"postgresql://postgres@127.0.0.1:{rig.postgres.port},127.0.0.1:{standby.port}/postgres"


@contextlib.asynccontextmanager
async def rigged(fault: Fault) -> AsyncIterator[Rig]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(postgres_for(fault))
        valkey = stack.enter_context(Valkey())
        await asyncio.to_thread(migrate, postgres.url)
        ledger = await open_ledger(postgres.url)
        await put_into(ledger, SystemClock()(), small_plan(rows=26, seats=150), hold_ttl_s=fault.hold_s)
        await ledger.aclose()
        rig = Rig(folder, postgres, valkey)
        if fault.sentinel:
            replica = stack.enter_context(Valkey("--replicaof", f"127.0.0.1 {valkey.port}"))
            sentinel = stack.enter_context(Sentinel(valkey))
            rig.redis_url = sentinel.url
            while b"state=online" not in valkey.command("INFO", "replication"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            assert replica.pid
        if fault.standby:
            await follow(rig, stack.enter_context(Standby(postgres)))
        async with contextlib.AsyncExitStack() as ways:
            for _ in range(3):
                rig.redis_ways.append(await ways.enter_async_context(Proxy(valkey.port)))
                rig.ledger_ways.append(await ways.enter_async_context(Proxy(postgres.port)))
            if fault.stripe:
                rig.stripe = stack.enter_context(LocalStripe())
                rig.stripe_way = await ways.enter_async_context(Proxy(int(rig.stripe.url.rpartition(":")[2])))
            try:
                await rig.start()
                yield rig
            finally:
                for process in [*rig.servers, rig.worker]:
                    if process is not None:
                        with contextlib.suppress(Exception):
                            process.kill()
                        with contextlib.suppress(Exception):
                            process.stop()


async def run(fault: Fault) -> list[str]:
    """Run it; what was wrong."""
    async with rigged(fault) as rig:
        record = Record()
        fans = [Fan(number, rig, record) for number in range(FANS)]
        crowd = [asyncio.create_task(fan.run()) for fan in fans]
        lagging = asyncio.create_task(measure_lag(record))
        await until_calm(record)
        calm, began_s = len(record.bought), time.monotonic()
        await fault.run(rig)
        healed_s = time.monotonic()
        await asyncio.sleep(AFTER_S)
        lagging.cancel()
        for fan in fans:
            fan.stop()
        results = await asyncio.gather(*crowd, return_exceptions=True)
        wrong = [f"a fan failed: {error!r}" for error in results if isinstance(error, BaseException)]
        after = [at for at in record.confirmed_at_s if at > healed_s]
        during = sum(began_s < at <= healed_s for at in record.confirmed_at_s)
        again_s = min(after) - healed_s if after else float("inf")
        wrong += await check(rig, record, fault)
        if rig.stripe is not None:
            wrong += await asyncio.to_thread(check_charges, rig.stripe, record)
        if again_s > fault.again_within_s:
            wrong.append(f"the first sale after healing took {again_s:.1f} s")
        mailed_s = await mails_complete(rig, record)
        if mailed_s is None:
            wrong.append("confirmations were not mailed")
        print(
            f"{fault.name:32} bought {calm}+{during}+{len(after)}  again after {again_s:4.1f} s  "
            f"longest {record.longest_s:4.1f} s ({record.slowest}; own lag {record.lag_s:.1f} s)  "
            f"without answer {record.unanswered.total()}  older answers {record.older}  "
            f"mails after {mailed_s if mailed_s is None else round(mailed_s, 1)} s  "
            f"{dict(sorted(record.statuses.items()))}",
            flush=True,
        )
        for process in rig.servers:
            log = (process._folder / "errors.log").read_text(errors="replace")
            if "Traceback" in log:
                wrong.append(
                    "a traceback: "
                    + log[log.index("Traceback") :].replace("\\n", "\n")[:200]
                    + " ... "
                    + log[log.index("Traceback") :].partition("level")[0].replace("\\n", "\n")[-900:]
                )
        return wrong


async def until_calm(record: Record) -> None:
    """Some purchases went through."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(record.bought) < CALM_PURCHASES and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def measure_lag(record: Record) -> None:
    while True:  # until cancelled
        began_s = time.monotonic()
        await asyncio.sleep(0.05)
        record.lag_s = max(record.lag_s, time.monotonic() - began_s - 0.05)


async def check(rig: Rig, record: Record, fault: Fault, ledger_url: str = "") -> list[str]:
    """Compare what fans were told with what the ledger has."""
    wrong = []
    ledger = await open_ledger(ledger_url or rig.postgres.url)
    sold: Counter[int] = Counter()
    for booking_id in record.bought:
        booking = await ledger.booking(booking_id)
        if booking is None or booking.state is not BookingState.CONFIRMED:
            wrong.append(f"{booking_id} was acknowledged and is {booking.state if booking else 'lost'}")
        else:
            sold.update(booking.seats)
    await ledger.aclose()
    wrong += [f"seat {seat} was sold {times} times" for seat, times in sold.items() if times > 1]
    wrong += sorted(set(record.strange))[:5]
    if record.strange:
        wrong.append(f"{len(record.strange)} strange answers")
    if record.longest_s > LONGEST_S + 0.5 + record.lag_s:
        wrong.append(f"somebody waited {record.longest_s:.1f} s")
    lost = sum(times for number, times in record.unanswered.items() if number or not fault.kills_server)
    if lost:
        wrong.append(f"{lost} requests to servers that ran got no answer (last {record.broken_off})")
    if record.worse:
        wrong.append(f"{record.worse} positions got worse")
    if not record.bought:
        wrong.append("nobody bought anything")
    return wrong


def check_charges(stripe: LocalStripe, record: Record) -> list[str]:
    """Compare what fans were told with the provider's own book."""
    charged = Counter(
        intent["metadata"].get("booking", "nobody") for intent in stripe.every_intent() if intent["status"] in CHARGED
    )
    wrong = [f"{booking} was charged {times} times" for booking, times in charged.items() if times > 1]
    return wrong + [f"{booking} is sold and was not charged" for booking in record.bought if not charged[booking]]


async def mails_complete(rig: Rig, record: Record) -> float | None:
    """How long until every acknowledged booking had its mail; None if that took too long."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < PATIENCE_S:
        names = {path.name for path in (rig.folder / "mails").glob("confirmed-*.eml")}
        if all(any(booking in name for name in names) for booking in record.bought):
            return time.monotonic() - began_s
        await asyncio.sleep(0.2)
    return None


def main() -> int:
    from bench import hand_over_faults  # it uses this module

    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", choices=[fault.name for fault in FAULTS])
    chosen = parser.parse_args().only
    failed = False
    for fault in FAULTS:
        if not chosen or fault.name in chosen:
            for line in asyncio.run(hand_over_faults.run(fault) if fault.hands_over else run(fault)):
                failed = True
                print(f"    {line}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
