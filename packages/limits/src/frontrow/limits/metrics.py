"""Metrics per rule: allowed, refused, would have refused (shadow), store errors and latency.

Counters are plain integers, so counting costs nanoseconds and needs no library. With prometheus-client installed,
`register()` lets a scrape read them; nothing is copied before that.
"""

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frontrow.core.errors import ConfigError
from frontrow.limits.quota import Decision
from frontrow.limits.stats import RuleStats, Stats

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry

    from frontrow.limits.rules import RuleBook

MAX_ROUTES = 10_000
MAX_FOLLOWED = 4  # limiters whose counters are read live; after four replacements no request uses the oldest any more
BUCKETS = 24  # bucket i holds latencies below 2^(i + 10) ns: from 1 µs to 8.6 s


class RuleLatency:
    """The latency of one rule's decisions, and how many were made without the store."""

    __slots__ = ("buckets", "store_errors", "total_ns")

    def __init__(self) -> None:
        self.buckets = [0] * 64  # one per bit of a nanosecond count, so no bound needs checking
        self.total_ns = 0
        self.store_errors = 0


class LimitMetrics:
    """The limiters' counters and latencies by rule. Counting takes no lock, because under the GIL a `+= 1` on a slot or
    list item is not interrupted. Rules that were replaced keep their counts.
    """

    def __init__(self) -> None:
        self._stats: dict[object, list[Stats]] = {}  # owner -> its limiters, the newest last
        self._past: dict[str, RuleStats] = {}
        self.latency: dict[str, RuleLatency] = {}
        self.routes: dict[tuple[str, str], RuleStats] = {}  # of limits that count each endpoint by itself
        self.books: weakref.WeakSet[RuleBook] = weakref.WeakSet()

    def count_route(self, decision: Decision, endpoint: str) -> None:
        """Count a decision of a limit that several endpoints have, for this endpoint."""
        key = decision.rule, endpoint
        counts = self.routes.get(key)
        if counts is None:
            counts = self.routes.setdefault(key if len(self.routes) < MAX_ROUTES else (decision.rule, ""), RuleStats())
        if decision.allowed:
            counts.allowed += 1
        else:
            counts.refused += 1

    def follow(self, stats: Stats, owner: object = None) -> None:
        """Include a limiter's counters. Those that the same owner replaced long ago are added up."""
        for rule in stats.rules:
            self.latency.setdefault(rule, RuleLatency())
        followed = self._stats.setdefault(owner, [])
        followed.append(stats)
        while len(followed) > MAX_FOLLOWED:
            _add(self._past, followed.pop(0))

    def record_latency(self, decision: Decision, ns: int) -> None:
        """Count how long a decision took and whether the store made it."""
        of_rule = self.latency[decision[1]]
        of_rule.buckets[(ns >> 10).bit_length()] += 1
        of_rule.total_ns += ns
        if decision[7] != "store":
            of_rule.store_errors += 1

    def snapshot(self) -> dict[str, dict[str, int]]:
        """Every counter of every rule as plain numbers."""
        total = {name: replace(counts) for name, counts in self._past.items()}
        for stats in [stats for followed in list(self._stats.values()) for stats in followed]:
            _add(total, stats)
        return {
            name: {
                "allowed": counts.allowed,
                "refused": counts.refused,
                "shadow_refused": counts.shadow_refused,
                "store_errors": self.latency[name].store_errors,
            }
            for name, counts in total.items()
        }

    def shadow_refusals(self) -> dict[str, int]:
        """What shadow rules would have refused, by rule."""
        return {name: counts["shadow_refused"] for name, counts in self.snapshot().items() if counts["shadow_refused"]}

    def register(self, registry: "CollectorRegistry | None" = None) -> None:
        """Register these counters with Prometheus (in the default registry unless another is given)."""
        try:
            from prometheus_client import REGISTRY
        except ImportError:
            raise ConfigError("Prometheus metrics need its client: pip install 'frontrow-limits[metrics]'") from None
        (registry or REGISTRY).register(_Collector(self))


def _add(total: dict[str, RuleStats], stats: Stats) -> None:
    for name, counts in stats.rules.items():
        sum_ = total.setdefault(name, RuleStats())
        sum_.allowed += counts.allowed
        sum_.refused += counts.refused
        sum_.shadow_refused += counts.shadow_refused


class _Collector:
    """Turns the counters into Prometheus families when scraped."""

    def __init__(self, metrics: LimitMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        decisions = CounterMetricFamily("frontrow_limits_decisions", "Decisions by outcome", labels=["rule", "outcome"])
        errors = CounterMetricFamily(
            "frontrow_limits_store_errors", "Decisions made without the store", labels=["rule"]
        )
        latency = HistogramMetricFamily("frontrow_limits_latency_seconds", "Time to a decision", labels=["rule"])
        for rule, counts in self._metrics.snapshot().items():
            for outcome in ("allowed", "refused", "shadow_refused"):
                decisions.add_metric([rule, outcome], counts[outcome])
            errors.add_metric([rule], counts["store_errors"])
            took = self._metrics.latency[rule]
            latency.add_metric([rule], _cumulative(took.buckets), took.total_ns / 1e9)
        routes = CounterMetricFamily(
            "frontrow_limits_route_decisions",
            "Decisions of limits of single routes",
            labels=["rule", "endpoint", "outcome"],
        )
        for (rule, endpoint), of_route in list(self._metrics.routes.items()):
            routes.add_metric([rule, endpoint, "allowed"], of_route.allowed)
            routes.add_metric([rule, endpoint, "refused"], of_route.refused)
        version = GaugeMetricFamily("frontrow_limits_rule_book_version", "The version of the shared rules in force")
        failures = CounterMetricFamily(
            "frontrow_limits_rule_book_failures", "How often the shared rules could not be read or taken"
        )
        for book in list(self._metrics.books):
            version.add_metric([], book.version)
            failures.add_metric([], book.failures)
        yield from (decisions, errors, latency, routes, *((version, failures) if self._metrics.books else ()))


def _cumulative(latency: Sequence[int]) -> list[tuple[str, float]]:
    """Prometheus buckets: how many took less than 2^(i + 10) ns."""
    total, buckets = 0, []
    for power, number in enumerate(latency[:BUCKETS]):
        total += number
        buckets.append((str((1 << power + 10) / 1e9), float(total)))
    return [*buckets, ("+Inf", float(sum(latency)))]
