"""How large a deployment a sale needs: servers, Redis, PostgreSQL, network and money.

The sale is rehearsed first, so the peaks are those of this crowd, this room and these seats. Then the cost model turns
people per second into cores and bytes.
"""

from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frontrow.core.errors import InvalidInput
from frontrow.rehearsal.cpu_costs import ARRIVAL, Costs, Load, price_load
from frontrow.rehearsal.simulation import Simulation

GIB = 1024**3
USABLE_SHARE = 0.6  # of a core: the rest is for peaks, kernels and garbage
Rates = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prices:
    """What a core, a GB of traffic and an hour cost. The defaults are round examples, not anybody's prices."""

    core_hour: float = 0.05
    traffic_gb: float = 0.08
    hours: float = 6.0  # how long everything is kept running
    currency: str = "EUR"

    def __post_init__(self) -> None:
        for name in ("core_hour", "traffic_gb", "hours"):
            if not 0 <= getattr(self, name) <= 1e6:
                raise InvalidInput(f"{name} must be from 0 to 1,000,000, not {getattr(self, name)!r}", param=name)


@dataclass(frozen=True, slots=True)
class PartSize:
    """One part of the deployment: what it does at the peak, and how many cores that needs."""

    name: str
    peak_cores: float
    cores: int
    cpu_s: float
    money: float


@dataclass(frozen=True, slots=True)
class SaleSize:
    """What a sale needs."""

    people: int
    seats: int
    capacity: int  # of the shop: people in it at once, as rehearsed
    window_size: int
    interval_s: float
    cdn: bool
    most_waiting: int
    joins_per_s: float  # the peaks
    polls_per_s: float
    entered_per_s: float
    bookings_per_s: float
    server: PartSize
    redis: PartSize  # its cores are shards: one Redis uses one core
    postgres: PartSize
    redis_gib: float
    streams_gib: float  # if every waiting page keeps a live stream instead of asking again
    peak_mbit_per_s: float  # of the servers
    traffic_gb: float
    traffic_money: float
    money: float
    currency: str
    hours: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def size_sale(simulation: Simulation, costs: Costs, prices: Prices | None = None, *, cdn: bool = False) -> SaleSize:
    """The size for a sale that has been rehearsed. `cdn`: a cache answers what is public and the same for everybody."""
    prices = prices or Prices()
    joins, waiting, entered, bookings = read_rates(simulation)
    polls = waiting / simulation.plan.poll_s
    load, everything = (
        price_load(costs, 1.0, joins=joins, polls=polls, visits=entered, bookings=bookings, cdn=some)
        for some in (cdn, False)
    )
    parts = [_size_part(part, load, prices) for part in ("server", "redis", "postgres")]
    traffic_gb = float(everything.bytes_per_s.sum()) / 1e9  # whoever sends it
    traffic_money = traffic_gb * prices.traffic_gb
    most_waiting = int(waiting.max())
    return SaleSize(
        people=simulation.plan.people,
        seats=simulation.plan.seats,
        capacity=simulation.plan.room.capacity,
        window_size=simulation.plan.room.window_size,
        interval_s=simulation.plan.room.interval_us / 1e6,
        cdn=cdn,
        most_waiting=most_waiting,
        joins_per_s=float(joins.max()),
        polls_per_s=float(polls.max()),
        entered_per_s=float(entered.max()),
        bookings_per_s=float(bookings.max()),
        server=parts[0],
        redis=parts[1],
        postgres=parts[2],
        redis_gib=simulation.history.holds * costs.redis_bytes_per_buyer / GIB,
        streams_gib=most_waiting * costs.stream_bytes / GIB,
        peak_mbit_per_s=float(load.bytes_per_s.max()) * 8 / 1e6,
        traffic_gb=traffic_gb,
        traffic_money=traffic_money,
        money=sum(part.money for part in parts) + traffic_money,
        currency=prices.currency,
        hours=prices.hours,
    )


def read_rates(simulation: Simulation) -> tuple[Rates, Rates, Rates, Rates]:
    """People who come, who wait, who enter and who book, in each second from the first arrival to the end."""
    history, crowd = simulation.history, simulation.crowd
    first_s = int(np.floor(min(0.0, float(crowd.arrives_s[0]))))
    last_s = max(ceil(history.time_s[-1]), 1)
    edges = np.arange(first_s, last_s + 1, dtype=np.float64)
    joins = np.histogram(crowd.arrives_s, edges)[0].astype(np.float64)
    at_s = np.array(history.time_s)
    seconds = edges[:-1]
    waiting = np.interp(seconds, at_s, np.array(history.waiting, dtype=np.float64))
    early = seconds < 0
    waiting[early] = np.cumsum(joins)[early]
    entered = _per_second(at_s, history.admitted, edges)
    seats_each = max(1.0, history.sold[-1] / max(1, history.bookings))
    return joins, waiting, entered, _per_second(at_s, history.sold, edges) / seats_each


def _per_second(at_s: Rates, totals: list[int], edges: Rates) -> Rates:
    """How much a running total grew in each second."""
    grown = np.interp(edges, at_s, np.array(totals, dtype=np.float64), left=0.0)
    return np.diff(grown)


def cores_needed(load: Load, part: str) -> int:
    """Cores for the peak, each used up to `USABLE_SHARE`."""
    return max(1, ceil(load.peak_cores(part) / USABLE_SHARE))


def _size_part(part: str, load: Load, prices: Prices) -> PartSize:
    cores = cores_needed(load, part)
    money = cores * prices.core_hour * prices.hours
    return PartSize(part, load.peak_cores(part), cores, load.cpu_s(part), money)


def server_us_per_arrival(costs: Costs) -> float:
    """What somebody costs the servers who comes and joins, before any waiting."""
    return costs.cpu_us("server", ARRIVAL)


def list_size(size: SaleSize) -> list[tuple[str, str, str]]:
    """Rows of (what, at the peak, what to have)."""
    server, redis, postgres = size.server, size.redis, size.postgres
    memory = f"{max(1.0, size.redis_gib):.0f} GiB of memory"
    return [
        ("people come", f"{size.joins_per_s:,.0f} per second", f"{size.most_waiting:,} wait at most"),
        ("waiting pages ask", f"{size.polls_per_s:,.0f} per second", "the CDN" if size.cdn else "the servers"),
        (
            "people enter",
            f"{size.entered_per_s:,.0f} per second",
            f"room.capacity {size.capacity:,}, room.window_size {size.window_size:,}",
        ),
        ("bookings", f"{size.bookings_per_s:,.0f} per second", ""),
        (
            "servers",
            f"{server.peak_cores:,.1f} cores",
            f"{_count(server.cores, 'process', 'processes')}, one core each",
        ),
        ("Redis", f"{redis.peak_cores:,.2f} cores", f"{_count(redis.cores, 'instance', 'shards')}, {memory}"),
        (
            "PostgreSQL",
            f"{postgres.peak_cores:,.1f} cores",
            f"{_count(postgres.cores, 'core', 'cores')}, a fast disk, a standby",
        ),
        ("network", f"{size.peak_mbit_per_s:,.0f} Mbit/s", f"{size.traffic_gb:,.0f} GB in all"),
        ("live streams", "", f"{size.streams_gib:,.1f} GiB if every waiting page keeps one"),
        (
            "money",
            f"{size.hours:g} hours",
            f"{size.money:,.0f} {size.currency}: servers {server.money:,.0f}, Redis {redis.money:,.0f}, "
            f"PostgreSQL {postgres.money:,.0f}, traffic {size.traffic_money:,.0f}",
        ),
    ]


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
