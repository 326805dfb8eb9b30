"""What a limiter did, as plain counters; `frontrow.limits.metrics` shows them to Prometheus."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontrow.limits.quota import Decision


@dataclass(slots=True)
class RuleStats:
    """One rule's counters. `allowed` and `refused` count decisions that spoke of this rule."""

    allowed: int = 0
    refused: int = 0
    shadow_refused: int = 0


class Stats:
    """Counters of a limiter. Written without a lock: they are figures to watch, not to decide by."""

    __slots__ = ("degraded", "denied_locally", "rules", "store_calls", "store_errors", "store_seconds")

    def __init__(self, names: Sequence[str]) -> None:
        self.rules = {name: RuleStats() for name in names}
        self.store_calls = 0
        self.store_errors = 0
        self.store_seconds = 0.0
        self.denied_locally = 0  # answered from the denial cache, without a round trip
        self.degraded = {"open": 0, "closed": 0, "local": 0}  # answers given while the store was down

    def count(self, decision: Decision, shadowed: Sequence[str] = ()) -> None:
        of_rule = self.rules.get(decision.rule)
        if of_rule is not None:
            if decision.allowed:
                of_rule.allowed += 1
            else:
                of_rule.refused += 1
        for name in shadowed:
            self.rules[name].shadow_refused += 1
        if decision.source != "store":
            self.degraded[decision.source] += 1
