"""How many seat attempts the box office takes: `make bench-seats` (issue "How fast": N2, N3, N5).

On private Valkey and PostgreSQL servers of this machine: CPU of each way an attempt can end, a storm of 6.6 attempts a
seat through one hold service on 1, 2 and 3 Redis shards, the same at a sustained rate from intended send times, the
share of wrong local refusals, the rebuild of 100,000 seats, and the ledger beside its textbook forms. Prints a table
with targets, writes bench/out/seats.json and seats.png.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import uvloop

from bench import ledger
from bench.seats_load import ATTEMPTS_A_SEAT, Meter, Office, closed_loop, open_loop, percentiles, phases
from frontrow.boxoffice.claims.redis import RedisClaims
from frontrow.boxoffice.ledger.migrate import migrate
from frontrow.boxoffice.ledger.opening import open_ledger
from frontrow.boxoffice.model.claims import sold
from frontrow.boxoffice.model.venues import Plan
from frontrow.boxoffice.plans.generate import generate
from frontrow.core.errors import Unavailable
from frontrow.rehearsal.servers import Postgres, Valkey

OUT = Path(__file__).parent / "out"
TARGET_ATTEMPTS, TARGET_P99_MS, TARGET_WRONG, TARGET_HOLDS, TARGET_REBUILD_S = 333_333, 50.0, 0.001, 20_000, 5.0


@contextlib.asynccontextmanager
async def office(plan: Plan, valkeys: list[Valkey], postgres: Postgres, name: str) -> AsyncIterator[Office]:
    """A fresh event in a fresh database on the running servers."""
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    url = postgres.url.rpartition("/")[0] + f"/{name}"
    await asyncio.to_thread(migrate, url)
    own = await open_ledger(url)
    claims = RedisClaims([valkey.unix_url for valkey in valkeys], timeout_s=10.0)
    one = Office(f"evt_{name}", plan, claims, own)
    assert await one.recovery.check(one.event.id)
    await one.feed.start()
    tidy()
    try:
        yield one
    finally:
        await one.feed.stop()
        await one.holds.aclose()
        await claims.aclose()
        await own.aclose()


def tidy() -> None:
    """As a server does after it started: what will stay is not garbage to be looked for."""
    gc.collect()
    gc.freeze()


async def storm(one: Office, servers: dict[str, list[int]], count: int) -> dict[str, Any]:
    """All attempts as fast as they go."""
    seats, passes = one.attempts(count, 1), one.passes(count)
    tidy()
    with Meter(servers) as meter:
        outcome = await closed_loop(one, seats, passes)
    await one.holds.aclose()
    return {
        "attempts_per_s": round(count / meter.wall_s),
        "attempts_per_service_cpu_s": round(count / meter.used["service"]),
        "cpu_us_per_attempt": meter.per_us(count),
        "won": outcome.won,
        "refused_locally": outcome.refused_locally,
        "refused_by_claims": outcome.refused,
        "failed": outcome.failed,
        "durable_holds_per_s": round(outcome.won / meter.wall_s),
    }


async def sustained(one: Office, count: int, rate: float) -> dict[str, Any]:
    """The same at a steady rate of arrivals, measured from the moment each should have been sent."""
    seats, passes = one.attempts(count, 2), one.passes(count)
    tidy()
    outcome = await open_loop(one, seats, passes, rate)
    await one.holds.aclose()
    return {
        "rate_per_s": round(rate),
        "all_ms": percentiles(outcome.waits_us),
        "won_ms": percentiles(outcome.won_waits_us),
        "won": outcome.won,
        "failed": outcome.failed,
        "wrong_refusals": await wrong_refusals(one),
    }


async def wrong_refusals(one: Office) -> float:
    """The share of locally refused seats that were in fact free: what this server believes against the claim store."""
    real = await one.claims.states(one.event.id, one.clock())
    believed = [seat for seat, state in enumerate(one.sale.seats.states) if state]
    audited = one.holds.stats.audited_free / max(1, one.holds.stats.audited)
    return max(audited, sum(seat not in real for seat in believed) / max(1, len(believed)))


async def back_after_flush(one: Office, valkey: Valkey) -> float:
    """Seconds from FLUSHALL in a sale that is half sold to the next hold, by the recovery service alone."""
    await one.recovery.start()
    shop_pass = one.passes(1)[0]
    free = [seat for seat, state in enumerate(one.sale.seats.states) if not state]
    begin = time.perf_counter()
    await asyncio.to_thread(valkey.command, "FLUSHALL")
    for _ in range(10_000):
        try:
            await one.holds.place(one.event.id, shop_pass, (one.plan.seat_ids[free[0]],))
            break
        except Unavailable:
            one.recovery.doubt(one.event.id)
            await asyncio.sleep(0.005)
    spent_s = time.perf_counter() - begin
    await one.recovery.stop()
    return round(spent_s, 2)


async def rebuild_100k(valkey: Valkey) -> float:
    """Seconds to fill 100,000 sold seats into an empty store."""
    plan = generate("stadium", 100_000)
    claims = RedisClaims(valkey.unix_url, timeout_s=10.0)
    claims.learn("evt_rebuild", plan)

    async def everything() -> Any:
        for seat in range(plan.size):
            yield sold(seat, f"fan{seat}", f"bkg_{seat:026d}", 1)

    begin = time.perf_counter()
    assert await claims.rebuild("evt_rebuild", everything, time.time_ns() // 1000)
    spent_s = time.perf_counter() - begin
    await claims.aclose()
    return round(spent_s, 2)


async def measure(size: int, phase_size: int) -> dict[str, Any]:
    plan = generate("stadium", size)
    attempts = round(size * ATTEMPTS_A_SEAT)
    report: dict[str, Any] = {"seats": size, "attempts": attempts, "storm": {}}
    with Postgres("-c", "shared_buffers=256MB") as postgres:
        for shards in (1, 2, 3):
            with contextlib.ExitStack() as stack:
                valkeys = [stack.enter_context(Valkey()) for _ in range(shards)]
                servers = {"redis": [valkey.pid for valkey in valkeys], "postgres": [postgres.pid]}
                async with office(plan, valkeys, postgres, f"storm{shards}") as one:
                    report["storm"][shards] = await storm(one, servers, attempts)
                if shards == 1:
                    async with office(plan, valkeys, postgres, "phases") as one:
                        report["phases"] = await phases(one, servers, phase_size)
                        report["back_after_flush_s"] = await back_after_flush(one, valkeys[0])
                    async with office(plan, valkeys, postgres, "open") as one:
                        rate = 0.5 * report["storm"][1]["attempts_per_s"]
                        report["sustained"] = await sustained(one, attempts, rate)
                    report["rebuild_100k_s"] = await rebuild_100k(valkeys[0])
    return report


def rows(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(what, figure, target and whether it is met)."""
    best, slow = report["storm"][1], report["sustained"]
    attempts, holds, wrong = best["attempts_per_s"], best["durable_holds_per_s"], slow["wrong_refusals"]
    p99, rebuild_s = slow["won_ms"]["p99"], report["rebuild_100k_s"]
    back_s = report["back_after_flush_s"]
    found = [
        ("attempts/s, one process", f"{attempts:,}", _met(attempts >= TARGET_ATTEMPTS, f"{TARGET_ATTEMPTS:,}")),
        ("attempts per CPU second of the service", f"{best['attempts_per_service_cpu_s']:,}", ""),
        ("durable holds/s in that storm", f"{holds:,}", _met(holds >= TARGET_HOLDS, f"{TARGET_HOLDS:,}")),
    ]
    for shards, told in report["storm"].items():
        found.append((f"{shards} Redis shard(s): attempts/s", f"{told['attempts_per_s']:,}", ""))
    for name, told in report["phases"].items():
        cpu = ", ".join(f"{who} {us}" for who, us in told["cpu_us"].items())
        found.append((f"{name}: CPU us an attempt", cpu, f"{told['per_s']:,}/s alone"))
    at = f"at {slow['rate_per_s']:,}/s"
    found += [
        (f"won, {at}: p50/p99/p99.9 ms", _three(slow["won_ms"]), _met(p99 < TARGET_P99_MS, "p99 < 50")),
        (f"all, {at}: p50/p99/p99.9 ms", _three(slow["all_ms"]), ""),
        ("local refusals of free seats", f"{wrong:.4%}", _met(wrong <= TARGET_WRONG, "0.1 %")),
        ("selling again after FLUSHALL, s", f"{back_s}", _met(back_s <= TARGET_REBUILD_S, "5")),
        ("rebuild of 100,000 seats, s", f"{rebuild_s}", _met(rebuild_s <= TARGET_REBUILD_S, "5")),
    ]
    for store in ("postgresql", "sqlite"):
        for phase in ("hold", "confirm"):
            rate = report["ledger"][f"{store} frontrow"][phase]["per_s"]
            found.append((f"{store}: durable {phase}s/s", f"{rate:,}", _met(rate >= TARGET_HOLDS, f"{TARGET_HOLDS:,}")))
    return found


def _met(ok: bool, target: str) -> str:
    return f"target {target}: {'met' if ok else 'NOT met'}"


def _three(told: dict[str, float]) -> str:
    return " / ".join(str(told[name]) for name in ("p50", "p99", "p99.9"))


def plot(report: dict[str, Any], path: Path) -> None:
    """CPU of each ending, and attempts/s by shards."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    below = [0.0] * len(report["phases"])
    for who in ("service", "redis", "postgres"):
        spent = [told["cpu_us"][who] for told in report["phases"].values()]
        left.bar(list(report["phases"]), spent, bottom=below, label=who)
        below = [a + b for a, b in zip(below, spent, strict=True)]
    left.set_ylabel("CPU microseconds an attempt")
    left.legend()
    right.bar([str(shards) for shards in report["storm"]], [s["attempts_per_s"] for s in report["storm"].values()])
    right.set_xlabel("Redis shards")
    right.set_ylabel("attempts/s through one hold service")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seats", type=int, default=50_000)
    parser.add_argument("--phase", type=int, default=20_000, help="attempts in each phase")
    parser.add_argument("--ledger-seconds", type=float, default=3.0, help="of each phase of the ledger's benchmark")
    chosen = parser.parse_args()
    report = uvloop.run(measure(chosen.seats, min(chosen.phase, chosen.seats)))
    options = argparse.Namespace(seconds=chosen.ledger_seconds, seats=2, callers=1_000)
    report["ledger"] = uvloop.run(ledger.run(options))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "seats.json").write_text(json.dumps(report, indent=1))
    plot(report, OUT / "seats.png")
    for what, figure, target in rows(report):
        print(f"{what:45} {figure:45} {target}")
    print(ledger.table(report["ledger"]))


if __name__ == "__main__":
    main()
