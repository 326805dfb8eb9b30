"""What a sale costs in CPU and bytes, from figures measured by our own benchmarks (`python -m bench.costs` writes
costs.json).

The model is linear: a person who comes, waits, visits and buys causes so many requests of each kind. Each request costs
every part (servers, Redis, PostgreSQL) what it cost in the benchmark.
"""

import json
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

PARTS = ("server", "redis", "postgres")
# What one person asks for. `seat_poll` is the seat map's changes, while somebody looks at it.
ARRIVAL = {"page": 1.0, "event": 1.0, "join": 1.0}
POLL = {"now_serving": 1.0}
VISIT = {"status": 1.0, "claim": 1.0, "map": 1.0, "seats": 1.0, "seat_poll": 8.0, "left": 1.0}
BOOKING = {"hold": 1.0, "pay": 1.0, "tickets": 1.0}
FROM_CDN = ("now_serving", "map")  # public, and the same for everybody
Rates = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU of each part and bytes sent per request of each kind; bytes that a stream and a buyer take."""

    work_us: dict[str, dict[str, float]]
    sent_bytes: dict[str, float]
    static_bytes: float
    redis_bytes_per_buyer: float
    stream_bytes: float

    def cpu_us(self, part: str, requests: dict[str, float], *, cdn: bool = False) -> float:
        """What these requests cost one part; with a CDN, without those that it answers."""
        return sum(
            count * self.work_us[kind][part] for kind, count in requests.items() if not (cdn and kind in FROM_CDN)
        )

    def bytes_sent(self, requests: dict[str, float], *, cdn: bool = False) -> float:
        return sum(
            count * self.sent_bytes.get(kind, 0.0) for kind, count in requests.items() if not (cdn and kind in FROM_CDN)
        )


def read_costs() -> Costs:
    table = json.loads(resources.files("frontrow.rehearsal").joinpath("costs.json").read_text())
    return Costs(**{name: value for name, value in table.items() if name != "made_by"})


@dataclass(frozen=True, slots=True)
class Load:
    """What the parts do at each step of a sale, and what that needs at its peak."""

    cores: dict[str, Rates]  # part -> CPU seconds per second, at each step
    bytes_per_s: Rates  # what the servers send
    step_s: float

    def peak_cores(self, part: str) -> float:
        return float(self.cores[part].max()) if self.cores[part].size else 0.0

    def cpu_s(self, part: str) -> float:
        return float(self.cores[part].sum()) * self.step_s


def price_load(
    costs: Costs, step_s: float, *, joins: Rates, polls: Rates, visits: Rates, bookings: Rates, cdn: bool = False
) -> Load:
    """The load of the parts, from how many people per second do what at each step."""
    rates = ((joins, ARRIVAL), (polls, POLL), (visits, VISIT), (bookings, BOOKING))
    cores = {
        part: np.asarray(sum(rate * costs.cpu_us(part, requests, cdn=cdn) for rate, requests in rates) / 1e6)
        for part in PARTS
    }
    sent = np.asarray(sum(rate * costs.bytes_sent(requests, cdn=cdn) for rate, requests in rates))
    if not cdn:
        sent = sent + joins * costs.static_bytes
    return Load(cores, sent, step_s)
