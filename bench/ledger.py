"""Durable holds and confirmed bookings per second through the ledger, beside the textbook ways, in one run.

PostgreSQL with synchronous_commit=on: Frontrow's group commit, a transaction each over asyncpg (16 connections), the
same through SQLAlchemy's ORM. SQLite with synchronous=FULL: Frontrow's writer thread, a transaction each through
aiosqlite. Every way writes the same rows: a booking, its seats under the unique index, a fact in the outbox.

    python -m bench.ledger [--seconds 3] [--seats 2] [--callers 1000]

CPU per operation is the process' own and the server's; trust it and the ratios more than the rates of a busy machine.
"""

import argparse
import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import uvloop

from bench.ledger_peers import AiosqlitePeer, AsyncpgPeer, Peer, SqlAlchemyPeer
from bench.seats_processes import POSTGRES, WAL_FILES, wal_ready
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.core.errors import FrontrowError
from tests.support.servers import Postgres

NOW_US = 1_700_000_000_000_000
OUT = Path("bench/out")
PEER_CALLERS = 64


class LedgerSide:
    """Frontrow's ledger with the peers' three calls."""

    callers = 1000

    def __init__(self, ledger: SqlLedger) -> None:
        self.ledger = ledger

    async def hold(self, number: int, seats: tuple[int, ...]) -> int:
        wish = NewHold(
            f"bkg_{number:026d}", "evt_bench", f"fan_{number}", seats, NOW_US, NOW_US + 600_000_000, 9_000, cap=8
        )
        return (await self.ledger.place_hold(wish)).fence

    async def pay(self, number: int, fence: int) -> None:
        await self.ledger.begin_payment(f"bkg_{number:026d}", fence, NOW_US)

    async def confirm(self, number: int, fence: int) -> None:
        await self.ledger.confirm(f"bkg_{number:026d}", fence, NOW_US)

    async def aclose(self) -> None:
        await self.ledger.aclose()


class Meter:
    """Rate, latency and CPU of one phase."""

    def __init__(self, server: psutil.Process | None) -> None:
        self._server = server

    def _server_cpu_s(self) -> float:
        if self._server is None:
            return 0.0
        total = 0.0
        for process in [self._server, *self._server.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total

    async def phase(
        self, call: Callable[[int], Awaitable[Any]], numbers: "range", callers: int, seconds: float
    ) -> dict[str, Any]:
        """Closed loop of `callers` until `seconds` are over or the numbers are used up."""
        line = iter(numbers)
        waits: list[float] = []
        refused = 0
        server_s, own_s, begun = self._server_cpu_s(), time.process_time(), time.perf_counter()
        end = begun + seconds

        async def caller() -> None:
            nonlocal refused
            for number in line:
                asked = time.perf_counter()
                try:
                    await call(number)
                except FrontrowError:
                    refused += 1
                heard = time.perf_counter()
                waits.append(heard - asked)
                if heard > end:
                    return

        await asyncio.gather(*[caller() for _ in range(callers)])
        took_s, own_s = time.perf_counter() - begun, time.process_time() - own_s
        server_s = self._server_cpu_s() - server_s
        waits.sort()
        count = len(waits)
        return {
            "per_s": round(count / took_s),
            "count": count,
            "refused": refused,
            "p50_ms": round(waits[count // 2] * 1e3, 2),
            "p99_ms": round(waits[int(count * 0.99)] * 1e3, 2),
            "client_cpu_us": round(own_s / count * 1e6, 1),
            "server_cpu_us": round(server_s / count * 1e6, 1),
        }


async def measure(side: "LedgerSide | Peer", meter: Meter, options: argparse.Namespace) -> dict[str, Any]:
    """Holds, then payments begun, then confirmations of the same bookings."""
    fences: dict[int, int] = {}
    width = options.seats

    async def hold(number: int) -> None:
        fences[number] = await side.hold(number, tuple(range(number * width, number * width + width)))

    callers = options.callers if isinstance(side, LedgerSide) else side.callers
    result = {"hold": await meter.phase(hold, range(10_000_000), callers, options.seconds)}
    made = range(len(fences))
    result["pay"] = await meter.phase(lambda n: side.pay(n, fences[n]), made, callers, options.seconds)
    paid = range(result["pay"]["count"])
    result["confirm"] = await meter.phase(lambda n: side.confirm(n, fences[n]), paid, callers, options.seconds)
    if isinstance(side, LedgerSide):
        taken = len(fences) * width

        async def half_taken(number: int) -> None:
            first = number * width if number % 2 else taken + number * width
            await side.hold(20_000_000 + number, tuple(range(first, first + width)))

        result["hold, half of them for taken seats"] = await meter.phase(
            half_taken, range(len(fences)), callers, options.seconds
        )
    return result


async def run(options: argparse.Namespace) -> dict[str, Any]:
    results: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="frontrow-bench-"))
    try:
        with Postgres("-c", "synchronous_commit=on", "-c", "fsync=on", *POSTGRES) as server:
            await asyncio.to_thread(migrate, server.url)
            await asyncio.to_thread(wal_ready, server, WAL_FILES)
            meter = Meter(psutil.Process(server.pid))
            peers: list[Callable[[], Awaitable[LedgerSide | Peer]]] = [
                lambda: ledger_side(server.url),
                lambda: AsyncpgPeer.open(server.url, PEER_CALLERS),
                lambda: SqlAlchemyPeer.open(server.url, PEER_CALLERS),
            ]
            for name, opener in zip(("frontrow", "asyncpg", "sqlalchemy"), peers, strict=True):
                results[f"postgresql {name}"] = await one(opener, meter, options)
                await emptied(server.url)
                await asyncio.to_thread(wal_ready, server)
        for name, sqlite in (("frontrow", True), ("aiosqlite", False)):
            url = f"sqlite:///{folder / name}.db"
            await asyncio.to_thread(migrate, url)
            opener = (
                (lambda url=url: ledger_side(url))
                if sqlite
                else (lambda url=url: AiosqlitePeer.open(url, PEER_CALLERS))
            )
            results[f"sqlite {name}"] = await one(opener, Meter(None), options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results


async def one(
    opener: Callable[[], Awaitable["LedgerSide | Peer"]], meter: Meter, options: argparse.Namespace
) -> dict[str, Any]:
    side = await opener()
    try:
        return await measure(side, meter, options)
    finally:
        await side.aclose()


async def ledger_side(url: str) -> LedgerSide:
    return LedgerSide(await open_ledger(url, warm=True))


async def emptied(url: str) -> None:
    """Every way begins with empty tables."""
    import asyncpg

    connection = await asyncpg.connect(url)
    await connection.execute("TRUNCATE bookings, booking_seats, outbox")
    await connection.close()


def table(results: dict[str, Any]) -> str:
    """The results for people, with the ratio to Frontrow's rate on the same store."""
    lines = [f"{'':24}{'phase':36}{'per s':>9}{'ratio':>8}{'p50 ms':>9}{'p99 ms':>9}{'client us':>11}{'server us':>11}"]
    for name, phases in results.items():
        ours = results[f"{name.split()[0]} frontrow"]
        for phase, figures in phases.items():
            ratio = ours[phase]["per_s"] / max(1, figures["per_s"])
            lines.append(
                f"{name:24}{phase:36}{figures['per_s']:>9,}{ratio:>7.1f}x{figures['p50_ms']:>9}{figures['p99_ms']:>9}"
                f"{figures['client_cpu_us']:>11}{figures['server_cpu_us']:>11}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="longest time of a phase")
    parser.add_argument("--seats", type=int, default=2, help="seats a hold")
    parser.add_argument("--callers", type=int, default=1000, help="callers waiting at once for Frontrow's ledger")
    options = parser.parse_args()
    results = uvloop.run(run(options))
    print(table(results))
    print("ratio: Frontrow's rate divided by this one's. SQLite's work is in the client's CPU.")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "ledger.json").write_text(json.dumps({"options": vars(options), "results": results}, indent=2))


if __name__ == "__main__":
    main()
