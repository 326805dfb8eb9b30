"""`make bench-sale`: small sales by `frontrow storm`, on one server with Redis and PostgreSQL.

1. A stadium is sold out: latencies, and CPU by part beside the CPU that the cost model predicts for the requests sent.
2. and 3. The same sale rehearsed and stormed, once limited by the window, once by the capacity: the median waits agree
within 10 %, or the exit code is 1. Results: bench/out/sale.json, and a report of each storm.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.api_servers import EVENT, SECRET, platform, put_on_sale
from bench.api_wire import tree_cpu_s
from bench.measure import OUT
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.rehearsal.cpu_costs import PARTS, read_costs
from frontrow.rehearsal.figures import read_figures
from frontrow.rehearsal.sale_plan import SalePlan
from frontrow.rehearsal.server_consent import ask_consent
from frontrow.rehearsal.simulation import Simulation
from frontrow.rehearsal.storm import Storm, StormResult
from frontrow.rehearsal.storm_plan import STORM_PLAN, StormPlan
from frontrow.rehearsal.storm_report import list_latencies, median_wait_s, write_json, write_storm_report
from frontrow.settings.room import RoomSettings
from frontrow.shared.derived_keys import Secrets
from frontrow.web.platform.storm_consent import StormConsent, write_consent
from tests.support.servers import Postgres, Valkey

AGREES = (0.9, 1.1)
HOLD_S = 60
IDLE_S = 5.0
SEEDS = range(1, 8)
STEP_NAMES = {"now-serving": "now_serving"}  # of a storm's steps -> of the cost model's


@dataclass(frozen=True)
class SmallSale:
    name: str
    room: RoomSettings
    plan: SalePlan

    @property
    def variables(self) -> dict[str, str]:
        """The room's settings as a server reads them."""
        names = ("capacity", "window_size", "interval_s", "leave_s")
        return {f"FRONTROW_ROOM_{name}".upper(): str(getattr(self.room, name)) for name in names}


def small_sale(name: str, room: RoomSettings, **changes: Any) -> SmallSale:
    plan = STORM_PLAN.changed(room=room.config(), hold_s=HOLD_S, patience_s=3_600.0, **changes)
    return SmallSale(name, room, plan)


def list_sales(people: int) -> list[SmallSale]:
    wide = RoomSettings(capacity=100_000, window_size=20_000, interval_s=0.1)
    windowed = RoomSettings(capacity=100_000, window_size=max(1, people // 60), interval_s=0.5, leave_s=2)
    full = RoomSettings(capacity=max(1, people // 6), window_size=people, interval_s=0.5, leave_s=2)
    quick = {"browse_s": 0.2, "payment_s": 0.2, "reaction_s": 0.1, "abandon_hold": 0.0}
    crowd = {"people": people, "seats": people * 4, "after_s": 30.0, "abandon_hold": 0.0}
    return [
        small_sale("sold out", wide, people=people, seats=people * 2, after_s=30.0, **quick),
        small_sale("limited by the window", windowed, **crowd, browse_s=2.0, payment_s=2.0),
        small_sale("limited by the capacity", full, **crowd, browse_s=3.0, payment_s=3.0),
    ]


def storm_one(sale: SmallSale, folder: Path) -> tuple[StormResult, dict[str, float]]:
    """Storm a fresh server; the result, and CPU seconds of each part beyond what it uses when nobody asks."""
    with Valkey() as valkey, Postgres() as postgres:
        migrate(postgres.url)
        asyncio.run(put_on_sale(postgres.url, generate("stadium", sale.plan.seats), hold_ttl_s=HOLD_S))
        proxies = {"FRONTROW_SERVER_TRUSTED_PROXIES": "127.0.0.1", "FRONTROW_ROOM_GRACE_S": "300"}
        proxies |= {"FRONTROW_ROOM_HUMAN": "none"}  # the fans are programs
        with platform(folder, valkey.url, postgres.url, **sale.variables, **proxies) as (pid, port):
            token = write_consent(Secrets(SECRET.encode()), StormConsent(EVENT, int(time.time()) + 3600))
            consent = asyncio.run(ask_consent(f"http://127.0.0.1:{port}", token))
            plan = StormPlan(consent.target, EVENT, sale.plan, length_s=600.0, processes=2)
            pids = {"server": pid, "redis": valkey.pid, "postgres": postgres.pid}
            idle = read_cpu(pids)
            time.sleep(IDLE_S)
            before = read_cpu(pids)
            result = Storm(plan, consent).run()
            after = read_cpu(pids)
            idle_each = {part: (before[part] - idle[part]) / IDLE_S * result.took_s for part in pids}
            return result, {part: after[part] - before[part] - idle_each[part] for part in pids}


def read_cpu(pids: dict[str, int]) -> dict[str, float]:
    return {part: tree_cpu_s(number) for part, number in pids.items()}


def predict_cpu(result: StormResult) -> dict[str, float]:
    """What the requests of this storm cost by the cost model, in seconds."""
    costs = read_costs()
    counts = {STEP_NAMES.get(name, name): row["count"] for name, row in result.record.latencies().items()}
    sent = {name: count for name, count in counts.items() if name in costs.work_us}
    return {part: costs.cpu_us(part, sent) / 1e6 for part in PARTS}


def rehearse_one(sale: SmallSale) -> float:
    """The median wait of the same sale, rehearsed: the middle of several crowds, because a small one has luck."""
    waits_s = []
    for seed in SEEDS:
        simulation = Simulation(sale.plan.changed(seed=seed))
        simulation.run()
        waits_s.append(read_figures(simulation, read_costs()).wait_median_s or 0.0)
    return median(waits_s)


def show(sale: SmallSale, result: StormResult, cpu: dict[str, float], predicted: dict[str, float]) -> None:
    record, took_s = result.record, result.took_s
    bought = f"{record.seats_bought:,} seats in {record.bookings:,} bookings"
    print(f"\n{sale.name}: {record.arrived:,} fans, {bought}, {took_s:.0f} s")
    print(f"  {'step':12} {'requests':>9} {'p50 ms':>9} {'p90 ms':>9} {'p99 ms':>9} {'p99.9 ms':>9} {'slowest':>9}")
    for name, *cells in list_latencies(record):
        print(f"  {name:12} " + " ".join(f"{cell:>9}" for cell in cells))
    for part in PARTS:
        print(f"  CPU of {part:9} {cpu[part]:6.1f} s, predicted {predicted[part]:6.1f} s")
    for check in result.checks:
        print(f"  {'ok' if check.holds else 'NOT SO'}: {check.what} ({check.detail})")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--people", type=int, default=900)
    options.add_argument("--only", default="", help="a word of the sale's name")
    chosen = options.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {"load": os.getloadavg()[0], "sales": {}}
    good = True
    for sale in list_sales(chosen.people):
        if chosen.only not in sale.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            result, cpu = storm_one(sale, Path(folder))
        predicted = predict_cpu(result)
        show(sale, result, cpu, predicted)
        row = {"cpu_s": cpu, "predicted_cpu_s": predicted, "storm": write_json(result)}
        good = good and result.fine
        if sale.name != "sold out":
            rehearsed_s, stormed_s = rehearse_one(sale), median_wait_s(result.record) or 0.0
            ratio = stormed_s / max(rehearsed_s, 0.001)
            print(f"  median wait: rehearsed {rehearsed_s:.1f} s, stormed {stormed_s:.1f} s, ratio {ratio:.3f}")
            row |= {"rehearsed_wait_s": rehearsed_s, "stormed_wait_s": stormed_s, "ratio": ratio}
            good = good and AGREES[0] <= ratio <= AGREES[1]
        told["sales"][sale.name] = row
        (OUT / f"sale-{sale.name.replace(' ', '-')}.html").write_text(write_storm_report(result), encoding="utf-8")
    (OUT / "sale.json").write_text(json.dumps(told, indent=1) + "\n")
    print(f"\nwritten to {OUT / 'sale.json'}; a report of each storm is beside it")
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
