"""What a store is asked and what it answers.

Every quota the limiter's rules may apply is one of its `lines`. An `Ask` names one line and one key per rule.
A store decides an `Ask` in one atomic step over all its rules: all are charged or none is.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from frontrow.limits.algorithms import Verdict
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision, Quota, Rule

CHECK, PEEK, REFUND = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Line:
    """One quota of one rule (a rule has one line per tier)."""

    rule: Rule
    tier: str
    quota: Quota

    @property
    def name(self) -> str:
        return f"{self.rule.name}.{self.tier}" if self.tier else self.rule.name


class Ask(NamedTuple):
    """One question to a store: one line and one key per rule, in rule order."""

    lines: tuple[int, ...]
    keys: tuple[StoreKey, ...]
    cost: int = 1
    now_us: int | None = None
    op: int = CHECK
    tag: StoreKey = ""  # what all the keys have in common (only asked for by a Cluster, to put them into one slot)


class Answer(NamedTuple):
    """The decision, and the indexes (in `Ask.lines`) of shadow rules that would have refused."""

    decision: Decision
    shadowed: tuple[int, ...] = ()


class Store(Protocol):
    """Decides asks over the lines it was made for; blocking and asyncio callers get the same answers."""

    @property
    def tag_parts(self) -> tuple[str, ...] | None:
        """Which parts of the key asks must bring as `tag`: none are needed (`None`), or the whole key (empty)."""

    def decide(self, ask: Ask) -> Answer: ...

    def adecide(self, ask: Ask) -> Awaitable[Answer]: ...

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


def summarise(lines: Sequence[Line], verdicts: Sequence[Verdict], source: str = "store") -> Answer:
    """One decision over several rules' verdicts: of those that refused the longest wait, else the least left."""
    shadowed = tuple(i for i, v in enumerate(verdicts) if lines[i].rule.shadow and not v.allowed)
    judged = [i for i, line in enumerate(lines) if not line.rule.shadow]
    if not judged:  # shadow rules only: their figures are told, the answer is yes
        first = verdicts[0]
        told = Decision(True, lines[0].rule.name, lines[0].quota.capacity, first.remaining, first.reset_after_us, 0)
        return Answer(told, shadowed)
    refused = [i for i in judged if not verdicts[i].allowed]
    if refused:
        at = max(refused, key=lambda i: verdicts[i].retry_after_us)
    else:
        at = min(judged, key=lambda i: verdicts[i].remaining)
    verdict, line = verdicts[at], lines[at]
    delay_us = 0 if refused else max(verdicts[i].delay_us for i in judged)
    return Answer(
        Decision(
            not refused,
            line.rule.name,
            line.quota.capacity,
            verdict.remaining,
            verdict.reset_after_us,
            verdict.retry_after_us,
            delay_us,
            source,
        ),
        shadowed,
    )
