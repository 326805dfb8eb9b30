"""A red team's simulation: bots with many addresses against people, and the share of places that bots get.

Everybody asks for a place in the pre-queue, so order counts for nothing and a place is a place: the draw gives bots the
share of places that they have. The layers of the entrance are added one by one. Limits of addresses and devices are
decided by the real limiter in simulated time; what bots can afford (processors, solved CAPTCHAs, accounts, codes) is an
assumption of `BotAttack`.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

Check = Callable[[str, int], bool]
"""Whether a limit allows one more request of a key at a time in microseconds."""
Bools = NDArray[np.bool_]
MAX_ATTEMPTS = 20_000_000
STEP = 50_000  # attempts between two calls of `progress`
START_US = 1_700_000_000 * US_PER_S
MAX_SUSPICION = 3
NETWORK_SUSPICION = 2  # as `waitingroom.entrance.suspicion` raises it


@dataclass(frozen=True, slots=True)
class BotAttack:
    """Who attacks, with what, and the entrance's settings. All shares are from 0 to 1."""

    people: int = 1_000_000
    bots: int = 1_000_000
    addresses: int = 50_000  # of the bots
    people_per_address: int = 3  # a household or an office
    tries: int = 3  # places that each bot asks for
    length_s: int = 1_800  # of the pre-queue
    per_ip: str = "50/second"
    per_device: str = "20/minute"
    devices_per_address: int = 5  # how many sets of headers the bots of one address take turns with
    max_number: int = 50_000  # of the proof of work
    cores: int = 50  # that the bots rent
    hashes_per_core_s: int = 5_000_000
    listed: float = 0.7  # share of the bots' addresses that the operator's list of networks has
    people_listed: float = 0.01
    captcha_solved: float = 0.1  # by bots, for money
    captcha_people: float = 0.98
    accounts: float = 0.2  # share of the bots that have an account of their own
    codes: float = 0.01  # share of the bots with a Verified-Fan code
    people_codes: float = 0.5
    seed: int = 1

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            low, high = (0.0, 1.0) if isinstance(field.default, float) else (1, 10**9)
            if isinstance(field.default, int | float) and (
                isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high
            ):
                raise InvalidInput(f"{field.name} must be from {low} to {high}, not {value!r}", param=field.name)
        if self.people + self.bots * self.tries > MAX_ATTEMPTS:
            raise InvalidInput(f"people and the bots' tries are at most {MAX_ATTEMPTS:,} together", param="tries")

    @classmethod
    def from_dict(cls, table: dict[str, Any]) -> "BotAttack":
        """The attack in a TOML table; unknown names are refused."""
        names = {field.name for field in dataclasses.fields(cls)}
        for name in table:
            if name not in names:
                known = ", ".join(sorted(names))
                raise InvalidInput(f"{name!r} is not a setting of an attack; there are {known}", param=name)
        return cls(**table)


@dataclass(frozen=True, slots=True)
class LayerResult:
    """Who has a place after this layer and all before it."""

    layer: str
    bot_places: int
    people_places: int

    @property
    def bot_share(self) -> float:
        """The share of the places that bots have."""
        return self.bot_places / max(1, self.bot_places + self.people_places)


class _Attempts:
    """Every attempt to get a place, in order of time."""

    def __init__(self, plan: BotAttack, rng: np.random.Generator) -> None:
        bot = np.repeat(np.arange(plan.bots), plan.tries)
        count = plan.people + bot.size
        self.at_us = np.sort(rng.integers(0, plan.length_s * US_PER_S, count))
        order = rng.permutation(count)
        self.is_bot: Bools = np.concatenate([np.zeros(plan.people, bool), np.ones(bot.size, bool)])[order]
        self.who = np.concatenate([np.arange(plan.people), bot])[order]
        households = max(1, plan.people // plan.people_per_address)
        addresses = np.concatenate([rng.integers(0, households, plan.people), households + bot % plan.addresses])
        self.address = addresses[order]
        listed_bots = rng.random(plan.addresses) < plan.listed
        listed_people = rng.random(households) < plan.people_listed
        self.listed: Bools = np.concatenate([listed_people, listed_bots])[self.address]
        self.device = np.where(self.is_bot, rng.integers(0, plan.devices_per_address, count), self.who)


def play_attack(
    plan: BotAttack, limit_of: Callable[[str], Check], progress: Callable[[float], None] = lambda share: None
) -> Iterator[LayerResult]:
    """The result before the first and after each layer. `limit_of` makes a limit like `50/second`; `progress` hears the
    share of the work that is done."""
    rng = np.random.default_rng(plan.seed)
    tries = _Attempts(plan, rng)
    alive: Bools = np.ones(tries.is_bot.size, bool)
    yield _count("nothing", tries, alive)
    alive &= _within_limit(limit_of(plan.per_ip), tries, alive, lambda done: progress(done * 0.4))
    yield _count(f"limit per address ({plan.per_ip})", tries, alive)
    suspicion = _device_suspicion(limit_of(plan.per_device), tries, alive, lambda done: progress(0.4 + done * 0.5))
    yield _count("proof of work", tries, alive & _affordable(plan, tries, alive, np.zeros_like(suspicion)))
    yield _count("… harder for busy devices", tries, alive & _affordable(plan, tries, alive, suspicion))
    suspicion = np.minimum(MAX_SUSPICION, suspicion + NETWORK_SUSPICION * tries.listed)
    alive &= _affordable(plan, tries, alive, suspicion)
    yield _count("… harder for listed networks", tries, alive)
    solved = rng.random(alive.size) < np.where(tries.is_bot, plan.captcha_solved, plan.captcha_people)
    alive &= solved
    yield _count("CAPTCHA of a provider", tries, alive)
    alive &= _one_per_person(plan, tries, alive)
    yield _count("one place per account", tries, alive)
    with_code = np.where(tries.is_bot, tries.who < plan.codes * plan.bots, tries.who < plan.people_codes * plan.people)
    alive &= with_code
    yield _count("Verified-Fan codes", tries, alive)
    progress(1.0)


def _count(layer: str, tries: _Attempts, alive: Bools) -> LayerResult:
    return LayerResult(layer, int((alive & tries.is_bot).sum()), int((alive & ~tries.is_bot).sum()))


def _within_limit(check: Check, tries: _Attempts, alive: Bools, progress: Callable[[float], None]) -> Bools:
    """Which attempts the limit per address allows."""
    allowed = np.zeros(alive.size, bool)
    for index, (at_us, address) in enumerate(zip(tries.at_us.tolist(), tries.address.tolist(), strict=True)):
        if not index % STEP:
            progress(index / alive.size)
        allowed[index] = check(str(address), START_US + at_us)
    return alive & allowed


def _device_suspicion(
    check: Check, tries: _Attempts, alive: Bools, progress: Callable[[float], None]
) -> NDArray[np.int64]:
    """How often the work of each attempt gets harder, because its device asks for many challenges."""
    found = np.zeros(alive.size, np.int64)
    rows = zip(tries.at_us.tolist(), tries.address.tolist(), tries.device.tolist(), alive.tolist(), strict=True)
    for index, (at_us, address, device, is_alive) in enumerate(rows):
        if not index % STEP:
            progress(index / alive.size)
        for level in range(1, MAX_SUSPICION + 1):
            if not is_alive or check(f"{level}:{address}:{device}", START_US + at_us):
                break
            found[index] = level
    return found


def _affordable(plan: BotAttack, tries: _Attempts, alive: Bools, suspicion: NDArray[np.int64]) -> Bools:
    """Which attempts can pay their work. Bots solve the cheapest ones first; a person's browser solves its own."""
    cost = plan.max_number / 2 * 4.0**suspicion
    mine = np.flatnonzero(alive & tries.is_bot)
    cheapest = mine[np.argsort(cost[mine], kind="stable")]
    budget = float(plan.cores) * plan.hashes_per_core_s * plan.length_s
    paid = cheapest[np.cumsum(cost[cheapest]) <= budget]
    affordable: Bools = ~tries.is_bot
    affordable[paid] = True
    return affordable


def _one_per_person(plan: BotAttack, tries: _Attempts, alive: Bools) -> Bools:
    """The first attempt of each person, and of each bot with an account."""
    has_account = ~tries.is_bot | (tries.who < plan.accounts * plan.bots)
    candidates = np.flatnonzero(alive & has_account)
    _, first = np.unique(tries.who[candidates] * 2 + tries.is_bot[candidates], return_index=True)
    kept = np.zeros(alive.size, bool)
    kept[candidates[first]] = True
    return kept


def build_table(plan: BotAttack, results: list[LayerResult]) -> "Table":
    """The layers as a rich table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"{plan.bots:,} bots with {plan.addresses:,} addresses against {plan.people:,} people (seed {plan.seed})"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, title_justify="left")
    for heading in ("after", "places of bots", "of people", "bots' share"):
        table.add_column(heading, justify="left" if heading == "after" else "right")
    for one in results:
        table.add_row(one.layer, f"{one.bot_places:,}", f"{one.people_places:,}", f"{one.bot_share:.1%}")
    return table
