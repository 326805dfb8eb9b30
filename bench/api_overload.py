"""Goodput when ten times too much is asked of the platform itself (F3), on Redis and PostgreSQL, all classes at once.

Rounds, each of them: what a request of each class costs by itself; as many callers as keep the server busy without a
queue that stands (the peak); ten times as many, none of whom waits for its Retry-After (the storm). Goodput is what was
served, each answer weighed by its class' cost, because what is shed is not what is served; by the server's CPU, because
the callers share the machine. Peak and storm take turns, so that both meet the machine in the same moods: the figure is
the median of the rounds' ratios, told with the lowest and the highest.
"""

import asyncio
import statistics
import time
from typing import Any

import uvloop

from bench.api_routes import ApiServer, Bookings, plain_asks
from bench.http_load import _Client, _Counter, cpu_s, load
from bench.room import idle_of

ROUNDS = 7
PEAK_S, STORM_S, WARM_S = 2.5, 3.5, 1.0
WANTED = 0.9  # of the peak's goodput
EACH = 60  # callers of a class at the peak: busy all the time, and nobody waits longer than the bound
TIMES = 10
ENOUGH = 10**9
Asks = dict[str, tuple[bytes, bytes]]  # class -> (request, expected status)


def asks_of(api_server: ApiServer, map_url: str) -> Asks:
    """A request of each class that may be asked again and again; the booking is paid here."""
    own = Bookings(api_server, 1)
    answers: list[bytes] = []
    load(api_server.pid, api_server.port, own.hold, total=1, connections=1, ok=b"201", answers=answers)
    own.held(answers)
    paying = own.of(b"POST", b"/pay", b'{"method":"pm_card_visa"}')(0)
    if load(api_server.pid, api_server.port, paying, total=1, connections=1).failed:
        raise SystemExit("the overload's booking could not be paid")
    plain = plain_asks(api_server, map_url)
    words = plain["events"][0].replace(b"/v1/events ", b"/v1/events?q=aurora ")
    return {
        "pay": (paying, b"200"),
        "hold": plain["hold of a taken seat"][:2],
        "map": plain["seats.bin"][:2],
        "join": plain["join"][:2],
        "browse": (words, b"200"),
    }


async def _crowd(port: int, asks: Asks, each: int, warm_s: float, seconds: float, pid: int) -> dict[str, Any]:
    """`each` callers of every class; what was served and shed after the warm-up, and the server's CPU meanwhile."""
    loop = asyncio.get_running_loop()
    counters = {name: _Counter(ENOUGH, each) for name in asks}
    for _ in range(each):
        made = [_caller(request, counters[name], ok) for name, (request, ok) in asks.items()]
        await asyncio.gather(*(loop.create_connection(one, "127.0.0.1", port) for one in made))
    await asyncio.sleep(warm_s)
    before = {name: (one.done, one.failed) for name, one in counters.items()}
    began_s, used_s = time.perf_counter(), cpu_s(pid)
    await asyncio.sleep(seconds)
    took_s, used_s = time.perf_counter() - began_s, cpu_s(pid) - used_s
    served = {name: (one.done - before[name][0]) - (one.failed - before[name][1]) for name, one in counters.items()}
    shed = {name: one.failed - before[name][1] for name, one in counters.items()}
    for one in counters.values():
        one.total = 0
        for client in tuple(one.clients):
            client.transport.abort()
    await asyncio.sleep(0.1)
    return {"callers": each * len(asks), "served": served, "shed": shed, "seconds": took_s, "cpu_s": used_s}


def _caller(request: bytes, counter: _Counter, ok: bytes) -> Any:
    return lambda: _Client(lambda _: request, counter, ok)


def goodput(told: dict[str, Any], cost_us: dict[str, float], idle_per_s: float) -> float:
    """Seconds of useful CPU for each second of CPU that the server used for its callers."""
    useful_us = sum(count * cost_us[name] for name, count in told["served"].items())
    return float(useful_us / 1e6 / (told["cpu_s"] - idle_per_s * told["seconds"]))


def overload(api_server: ApiServer, map_url: str) -> dict[str, Any]:
    """The peak and the storm, round by round."""
    asks = asks_of(api_server, map_url)
    idle_per_s = idle_of({"platform": (api_server.pid, api_server.port)})["platform"]
    costs: list[dict[str, float]] = []
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for _ in range(ROUNDS):
        costs.append({name: _cost_us(api_server, *ask, idle_per_s) for name, ask in asks.items()})
        peak = uvloop.run(_crowd(api_server.port, asks, EACH, WARM_S, PEAK_S, api_server.pid))
        storm = uvloop.run(_crowd(api_server.port, asks, EACH * TIMES, WARM_S, STORM_S, api_server.pid))
        pairs.append((peak, storm))
    found = summary(costs, pairs, idle_per_s)
    show(found)
    return found


def _cost_us(api_server: ApiServer, request: bytes, ok: bytes, idle_per_s: float) -> float:
    return load(
        api_server.pid, api_server.port, request, total=1_000, connections=EACH, ok=ok, idle_per_s=idle_per_s
    ).cpu_us


def summary(
    costs: list[dict[str, float]], pairs: list[tuple[dict[str, Any], dict[str, Any]]], idle_per_s: float
) -> dict[str, Any]:
    """The costs' medians, all rounds' peaks and storms added up, and the ratio of goodput: median, lowest, highest."""
    cost_us = {name: statistics.median(one[name] for one in costs) for name in costs[0]}
    kept = sorted(goodput(storm, cost_us, idle_per_s) / goodput(peak, cost_us, idle_per_s) for peak, storm in pairs)
    found: dict[str, Any] = {
        "cost_us": cost_us,
        "idle_per_s": idle_per_s,
        "peak": _added([peak for peak, _ in pairs]),
        "storm": _added([storm for _, storm in pairs]),
        "kept": statistics.median(kept),
        "kept_rounds": kept,
    }
    for name in ("peak", "storm"):
        found[name]["goodput"] = goodput(found[name], cost_us, idle_per_s)
    return found


def _added(crowds: list[dict[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {name: sum(one[name] for one in crowds) for name in ("seconds", "cpu_s")}
    for what in ("served", "shed"):
        total[what] = {name: sum(one[what][name] for one in crowds) for name in crowds[0][what]}
    return {"callers": crowds[0]["callers"]} | total


def show(found: dict[str, Any]) -> None:
    peak, storm = found["peak"], found["storm"]
    print(f"\nthe platform, {peak['callers']} callers of all classes and then {storm['callers']}:")
    print(f"  {'class':8}{'us each':>9}{'peak/s':>9}{'storm/s':>9}{'shed/s':>9}{'shed':>7}")
    for name, cost_us in found["cost_us"].items():
        served, shed = storm["served"][name], storm["shed"][name]
        print(
            f"  {name:8}{cost_us:9.0f}{peak['served'][name] / peak['seconds']:9,.0f}"
            f"{served / storm['seconds']:9,.0f}{shed / storm['seconds']:9,.0f}{shed / max(1, served + shed):7.0%}"
        )
    print(f"  goodput of the admitted: {kept_text(found)} of the peak's for each CPU second (wanted {WANTED:.0%})")


def kept_text(found: dict[str, Any]) -> str:
    rounds = found.get("kept_rounds", [found["kept"]])
    return f"{found['kept']:.0%} ({rounds[0]:.0%} to {rounds[-1]:.0%} in {len(rounds)} rounds)"
