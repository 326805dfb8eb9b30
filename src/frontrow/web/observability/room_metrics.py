"""The waiting room's metrics of all workers: as families of the platform's page, and as the page of `room serve`.

Counters and open streams are added up over the workers. Everything else describes the room itself, as the worker that
is scraped sees it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from frontrow.core.failures import failures_here
from frontrow.waitingroom.service.metrics import RoomMetrics
from frontrow.web.observability.job_health import job_families
from frontrow.web.observability.worker_metrics import Board, Family, Sample

PER_PROCESS: Final = ("frontrow_room_streams",)
WRITE_EVERY_S: Final = 1.0


def room_families(metrics: RoomMetrics) -> list[Family]:
    """Every family of this process' rooms."""
    families = []
    for metric in metrics.collect():
        is_counter = metric.type == "counter"
        name = f"{metric.name}_total" if is_counter else metric.name
        samples = [Sample(one.name, tuple(one.labels.items()), float(one.value)) for one in metric.samples]
        add = "sum" if is_counter or name in PER_PROCESS else "max"
        families.append(Family(name, metric.type, metric.documentation, add, samples))
    return families


def room_metrics_page(metrics: RoomMetrics, board: Board) -> tuple[str, bytes]:
    """The content type and body of /metrics of `room serve`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(board.joined([*room_families(metrics), *job_families(failures_here())])))
    return CONTENT_TYPE_LATEST, generate_latest(registry)


async def write_room_counts(metrics: RoomMetrics, board: Board) -> None:
    """Until cancelled: show the other workers what is added up."""
    while True:
        shown = [family for family in room_families(metrics) if family.add == "sum"]
        board.write([*shown, *job_families(failures_here())])
        await asyncio.sleep(WRITE_EVERY_S)


class _Families(Collector):
    """Families as prometheus_client writes them."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        for family in self._families:
            name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
            metric = Metric(name, family.about, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric
