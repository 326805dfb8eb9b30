"""Goodput when ten times too much is asked (F3): a guarded server at its peak, then with ten times the callers."""

import asyncio
import time
from typing import Any

from bench.http_load import server
from tests.ops.crowd import counts_of, crowd
from tests.ops.overload_server import COLD, HOT

PEAK_S, STORM_S = 4.0, 8.0
EACH = 2  # connections a class at the peak
TIMES = 10


def overload() -> dict[str, Any]:
    """Served requests a second and a CPU second, at the peak and in the storm."""
    with server("tests.ops.overload_server") as (_, port):
        peak = asyncio.run(_measured(port, EACH, PEAK_S))
        storm = asyncio.run(_measured(port, EACH * TIMES, STORM_S))
    kept = storm["per_cpu_s"] / peak["per_cpu_s"]
    print(f"\nten times too much: {storm['per_s']:,.0f} served/s against {peak['per_s']:,.0f} at the peak")
    print(f"  by CPU {storm['per_cpu_s']:,.0f} against {peak['per_cpu_s']:,.0f}: {kept:.0%} (wanted 90 %)")
    print(f"  shed by class: {storm['shed']}")
    return {"peak": peak, "storm": storm, "kept_by_cpu": kept, "kept_by_time": storm["per_s"] / peak["per_s"]}


async def _measured(port: int, each: int, seconds: float) -> dict[str, Any]:
    before, began_s = await asyncio.to_thread(counts_of, port), time.perf_counter()
    seen = await crowd(port, COLD | HOT, each, seconds, enough=lambda _: False)
    took_s, after = time.perf_counter() - began_s, await asyncio.to_thread(counts_of, port)
    served = sum(count for (_, status), count in seen.items() if status == 200)
    return {
        "served": served,
        "per_s": served / took_s,
        "per_cpu_s": served / (after["cpu_s"] - before["cpu_s"]),
        "shed": {name: after["shed"][name] - before["shed"][name] for name in after["shed"]},
    }
