"""A limiter's statistics as plain counters. `frontrow.limits.metrics` exports them to Prometheus."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from frontrow.limits.quota import Decision


@dataclass(slots=True)
class RuleStats:
    """One rule's counters. `allowed` and `refused` count decisions that named this rule."""

    allowed: int = 0
    refused: int = 0
    shadow_refused: int = 0


class Stats:
    """Counters of a limiter, written without a lock. They are for monitoring, not for decisions."""

    __slots__ = (
        "_followed",
        "_own",
        "degraded",
        "denied_locally",
        "store_calls",
        "store_error",
        "store_errors",
        "store_seconds",
    )

    def __init__(self, names: Sequence[str]) -> None:
        self._own = {name: RuleStats() for name in names}
        self._followed: list[Callable[[], Iterable[tuple[str, int, int, int]]]] = []
        self.store_calls = 0  # calls that the store answered; one call can decide many requests
        self.store_errors = 0  # calls and attempts to connect that failed
        self.store_error = ""  # why the store is down; empty while it answers
        self.store_seconds = 0.0
        self.denied_locally = 0  # refused from the refusal cache, without a round trip
        self.degraded = {"open": 0, "closed": 0, "local": 0}  # decisions made while the store was down

    @property
    def rules(self) -> dict[str, RuleStats]:
        """Each rule's current counters, including those kept by a compiled store."""
        total = {name: replace(own) for name, own in self._own.items()}
        for counts in self._followed:
            for name, allowed, refused, shadow_refused in counts():
                total[name].allowed += allowed
                total[name].refused += refused
                total[name].shadow_refused += shadow_refused
        return total

    def follow(self, counts: Callable[[], Iterable[tuple[str, int, int, int]]]) -> None:
        """Include the counters of a store that keeps its own."""
        self._followed.append(counts)

    def count(self, decision: Decision, shadowed: Sequence[str] = ()) -> None:
        allowed, rule, _, _, _, _, _, source = decision
        of_rule = self._own.get(rule)
        if of_rule is not None:
            if allowed:
                of_rule.allowed += 1
            else:
                of_rule.refused += 1
        for name in shadowed:
            self._own[name].shadow_refused += 1
        if source != "store":
            self.degraded[source] += 1
