"""Metrics of adaptive limits: the limit, what is in flight and waits, requests by class and outcome, and baselines.

As in `frontrow.limits.metrics`, the limits count in plain integers, and a scrape reads them.
"""

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from frontrow.core.errors import ConfigError
from frontrow.limits.adaptive.limit import AdaptiveLimit

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry


class AdaptiveMetrics:
    """Follows limits for as long as they exist. Two of one name are added up."""

    def __init__(self, *limits: AdaptiveLimit) -> None:
        self._limits: weakref.WeakSet[AdaptiveLimit] = weakref.WeakSet(limits)

    def follow(self, limit: AdaptiveLimit) -> None:
        """Include a limit."""
        self._limits.add(limit)

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """Every figure of every limit, by its name."""
        found: dict[str, dict[str, Any]] = {}
        for limit in list(self._limits):
            row = found.setdefault(limit.name, {"limit": 0, "in_flight": 0, "waiting": 0, "classes": {}})
            row["limit"] += limit.limit
            row["in_flight"] += limit.in_flight
            row["waiting"] += limit.waiting
            for rank, name in enumerate(limit.classes):
                new = {"admitted": 0, "shed": 0, "dropped": 0, "baseline_s": 0.0}
                counts = row["classes"].setdefault(name, new)
                counts["admitted"] += limit.admitted[rank]
                counts["shed"] += limit.shed_counts[rank]
                counts["dropped"] += limit.drop_counts[rank]
                counts["baseline_s"] = max(counts["baseline_s"], limit.baselines_s[name])
        return found

    def register(self, registry: "CollectorRegistry | None" = None) -> None:
        """Register these figures with Prometheus (in the default registry unless another is given)."""
        try:
            from prometheus_client import REGISTRY
        except ImportError:
            raise ConfigError("Prometheus metrics need its client: pip install 'frontrow-limits[metrics]'") from None
        (registry or REGISTRY).register(_Collector(self))


class _Collector:
    """Turns the figures into Prometheus families when scraped."""

    def __init__(self, metrics: AdaptiveMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        of_limit = {
            "limit": GaugeMetricFamily("frontrow_adaptive_limit", "Allowed at once", labels=["limiter"]),
            "in_flight": GaugeMetricFamily("frontrow_adaptive_in_flight", "In flight", labels=["limiter"]),
            "waiting": GaugeMetricFamily("frontrow_adaptive_waiting", "Waiting for a slot", labels=["limiter"]),
        }
        outcomes = CounterMetricFamily(
            "frontrow_adaptive_requests", "Requests by class and outcome", labels=["limiter", "class", "outcome"]
        )
        baselines = GaugeMetricFamily(
            "frontrow_adaptive_baseline_seconds", "Latency without a queue", labels=["limiter", "class"]
        )
        for limiter, row in self._metrics.snapshot().items():
            for figure, family in of_limit.items():
                family.add_metric([limiter], row[figure])
            for name, counts in row["classes"].items():
                for outcome in ("admitted", "shed", "dropped"):
                    outcomes.add_metric([limiter, name, outcome], counts[outcome])
                baselines.add_metric([limiter, name], counts["baseline_s"])
        yield from (*of_limit.values(), outcomes, baselines)
