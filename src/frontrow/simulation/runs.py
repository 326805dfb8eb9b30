"""Many seeds: in several processes, with what they reached counted.

A run fails if a law was broken, or if it was long enough and did not reach every state of `INTERESTING` (and of `RARE`,
if it was longer): histories in which little happens prove little.
"""

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from frontrow.simulation.scene import Scene
from frontrow.simulation.world import Result, run_seed

ENOUGH: Final = 40  # seeds, after which every interesting state must have been reached
CALLED: Final = ("ledger", "redis", "provider", "server")
INTERESTING: Final = (
    "crash",
    "cut off",
    "clock jumped",
    "ledger away",
    "redis away",
    "provider away",
    "redis lost all",
    "redis lost newest",
    "redis lost newest unnoticed",
    "redis failed over",
    "redis out of memory",
    "redis lost its scripts",
    "ledger failed over",
    "ledger serialization failure",
    "ledger unique violation",
    "ledger lock timeout",
    "replica lags",
    "booking of schema 40",
    "read from a replica",
    "redeem ok",
    "redeem used_up",
    "redeem not_bought",
    "booking expired",
    "booking cancelled",
    "booking refunded",
    "booking confirmed",
    "payment captured",
    "payment declined",
    "payment lapsed",
    "payment voided",
    "checkout retrying",
    "checkout action",
    "checkout awaited",
    "paid in the browser",
    "paid unread",
    "fact HoldChanged",
    "fact BookingPartlyRefunded",
    "fact BookingReseated",
    "fact RefundFailed",
    "fact TicketReturned",
    "fact TransferAccepted",
    "fact OfferMade",
    "hold: claims_rebuilding",
    "hold: seats_taken",
    "hold: rate_limited",
    "claim pass: room_full",
    "meddle: stale_fence",
    "scan: ticket_revoked",
    "let in",
    "fact DisputeOpened",
    "fact DisputeEnded",
    "fact DisputeLost",
    "event cancelled",
    "invoice",
    "message",
    "counted by the shared limit",
    "refused by the shared limit",
    "used TEN",
    "choose: none_left",
    "choose: discount_refused",
    "fact TicketResold",
    "give back: ok",
    "undo scan: ok",
    "meddle: transfer_not_found",
    *(f"a call of {store} {fate}" for store in CALLED for fate in ("lost", "unanswered", "slow", "doubled")),
    "a fact came late once more",
)
RARE_ENOUGH: Final = 400  # seeds, after which these must have been reached too
RARE: Final = (
    "fact LatePaymentReturned",
    "fact TransferWithdrawn",
    "let in and never paid",
    "claim offer: ok",
    "decline offer: ok",
    "hold: cap_reached",
    "facts came in another order",
    "mail away",
    "room audit away",
    "replica away",
    *(f"a call of mail {fate}" for fate in ("lost", "unanswered", "slow", "doubled")),
    *(f"a connection of {store} broke after a call was carried out" for store in ("ledger", "redis")),
    "message twice",
)


@dataclass
class Tally:
    """What some seeds came to."""

    first: int = 0
    seeds: int = 0
    steps: int = 0
    cpu_s: float = 0.0
    took_s: float = 0.0
    commit: str = ""
    reached: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.steps += result.steps
        self.cpu_s += result.cpu_s
        self.reached.update(result.reached)
        self.faults.update(result.faults)
        if result.broken:
            self.failed[result.seed] = result.broken

    def join(self, other: "Tally") -> None:
        self.seeds += other.seeds
        self.steps += other.steps
        self.cpu_s += other.cpu_s
        self.took_s += other.took_s
        self.reached.update(other.reached)
        self.faults.update(other.faults)
        self.failed |= other.failed

    @property
    def missing(self) -> list[str]:
        """States that so many seeds should have reached."""
        wanted = (*INTERESTING, *RARE) if self.seeds >= RARE_ENOUGH else INTERESTING if self.seeds >= ENOUGH else ()
        return [state for state in wanted if not self.reached[state] and not self.faults[state]]

    def closing_line(self) -> str:
        """What it came to, in one line."""
        line = (
            f"simulation: {self.seeds:,} seeds, {len(self.failed)} failed, "
            f"{60 * self.seeds / max(self.took_s, 1e-9):.0f} seeds/min, "
            f"{self.cpu_s / max(self.seeds, 1):.2f} CPU s each, {len(self.reached)} kinds of states reached"
        )
        return f"{line}, NOT REACHED: {', '.join(self.missing)}" if self.missing else line


def replay_command(seed: int, config: str = "") -> str:
    return f"frontrow rehearse --chaos --histories 1 --seed {seed}" + (f" --config {config}" if config else "")


def play_many(seeds: Iterable[int], jobs: int, bug: str = "", scene: Scene | None = None) -> Iterator[Result]:
    """The results of these seeds, played in this many processes, in order."""
    if jobs == 1:
        yield from map(_play, ((seed, bug, scene) for seed in seeds))
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_play, [(seed, bug, scene) for seed in seeds], chunksize=2)


def _play(given: tuple[int, str, Scene | None]) -> Result:
    seed, bug, scene = given
    return run_seed(seed, scene, bug=bug, only=bug.partition(":")[2])
