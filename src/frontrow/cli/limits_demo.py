"""`frontrow limits demo`: a crowd against the limiter, live in the terminal, in simulated time.

Ordinary fans, impatient ones who keep reloading, and a few bots behind two addresses send requests. Four rules limit
them, checked all or nothing. The demo shows who gets through and which rule stopped the others.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from frontrow.core.clock import US_PER_S
from frontrow.limits import Limiter, Quota, Rule

if TYPE_CHECKING:
    from rich.table import Table

START_US = 1_800_000_000 * US_PER_S
FRAMES_PER_S = 10
SPEED = 2  # simulated seconds per real second
RULES = [
    Rule("per-fan", Quota.parse("10/second", algorithm="token_bucket", burst=15), per=("fan",)),
    Rule("per-address", Quota.parse("50/second"), per=("ip",)),
    Rule("holds", Quota.parse("600/second", algorithm="leaky_bucket"), per=("endpoint",)),
    Rule("everything", Quota.parse("60000/minute", algorithm="fixed_window"), per=()),
]


@dataclass(slots=True)
class VisitorKind:
    """A kind of visitor: how many there are, how many requests each sends per second, behind how many addresses."""

    name: str
    people: int
    requests_per_s: float
    addresses: int
    offered: int = 0
    served: int = 0
    stopped_by: Counter[str] = field(default_factory=Counter)

    def keys(self, rng: random.Random, seconds: float) -> Iterator[dict[str, str]]:
        """The requests of a period as keys for the limiter."""
        mean = self.people * self.requests_per_s * seconds
        for _ in range(int(mean) + (rng.random() < mean % 1)):
            person = rng.randrange(self.people)
            address = person % self.addresses
            yield {"fan": f"{self.name}-{person}", "ip": f"{self.name}-{address}", "endpoint": "POST /holds"}


def make_crowd() -> list[VisitorKind]:
    return [
        VisitorKind("fans", 300, 0.5, 300),
        VisitorKind("impatient", 20, 14.0, 20),
        VisitorKind("bots", 40, 30.0, 2),
    ]


def send_requests(limiter: Limiter, kinds: list[VisitorKind], rng: random.Random, now_us: int, seconds: float) -> None:
    """Send everybody's requests of `seconds` in random order, spread over that time."""
    requests = [(kind, key) for kind in kinds for key in kind.keys(rng, seconds)]
    rng.shuffle(requests)
    for index, (kind, key) in enumerate(requests):
        at_us = now_us + round(index / len(requests) * seconds * US_PER_S)
        decision = limiter.check(key, now_us=at_us)
        kind.offered += 1
        if decision.allowed:
            kind.served += 1
        else:
            kind.stopped_by[decision.rule] += 1


def build_table(kinds: list[VisitorKind], simulated_s: float) -> "Table":
    """Who sent requests, who was served, and which rules stopped them."""
    from rich.box import SIMPLE_HEAD
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table(
        title=f"A crowd at the entrance, {simulated_s:4.1f} simulated seconds", box=SIMPLE_HEAD, pad_edge=False
    )
    for heading in ("who", "asked", "served", "share", "stopped by"):
        table.add_column(heading, justify="right" if heading in ("asked", "served") else "left", no_wrap=True)
    for kind in kinds:
        bar = ProgressBar(total=max(kind.offered, 1), completed=kind.served, width=12)
        why = ", ".join(f"{rule} {count:,}" for rule, count in kind.stopped_by.most_common(2)) or "nobody"
        table.add_row(kind.name, f"{kind.offered:,}", f"{kind.served:,}", bar, why)
    return table


def demo(seconds: float = 12.0) -> None:
    """Show the limiter at work: a simulated crowd against four rules, live. Ends by itself."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    for rule in RULES:
        per = " + ".join(rule.per or ()) or "everybody together"
        console.print(f"rule {rule.name}: {rule.quota}, counted by {per}", highlight=False)
    kinds, rng, limiter = make_crowd(), random.Random(2026), Limiter(RULES)
    cpu_ns, frame_s = 0, 1 / FRAMES_PER_S
    with Live(build_table(kinds, 0), console=console, refresh_per_second=FRAMES_PER_S, transient=True) as live:
        began_s = time.monotonic()
        for frame in range(max(1, round(seconds * FRAMES_PER_S))):
            before_ns = time.process_time_ns()
            now_us = START_US + round(frame * frame_s * SPEED * US_PER_S)
            send_requests(limiter, kinds, rng, now_us, frame_s * SPEED)
            cpu_ns += time.process_time_ns() - before_ns
            live.update(build_table(kinds, (frame + 1) * frame_s * SPEED))
            time.sleep(max(0.0, began_s + (frame + 1) * frame_s - time.monotonic()))
    console.print(build_table(kinds, max(1, round(seconds * FRAMES_PER_S)) * frame_s * SPEED))
    _summary(kinds, cpu_ns)


def _summary(kinds: list[VisitorKind], cpu_ns: int) -> None:
    offered = sum(kind.offered for kind in kinds)
    served = sum(kind.served for kind in kinds)
    fans, bots = kinds[0], kinds[-1]
    print(f"{offered:,} requests, {served:,} served, {offered - served:,} refused; four rules in one step each.")
    print(f"Fans got {fans.served / max(fans.offered, 1):.0%} of what they asked for, ", end="")
    print(f"bots {bots.served / max(bots.offered, 1):.0%}.")
    print(f"One check of all four rules cost {cpu_ns / max(offered, 1) / 1000:.1f} µs of CPU, crowd included.")
