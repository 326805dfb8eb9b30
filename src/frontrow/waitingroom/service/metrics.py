"""Prometheus metrics of a waiting room, for the room as a server of its own and for the platform.

A scrape reads plain counters; a request only adds integers.
"""

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.service.room import WaitingRoom


@dataclass(frozen=True, slots=True)
class RoomMetrics:
    """The counters of one process: requests by endpoint and refusals by `endpoint:code` (`counts`), what the service
    did (`room.counts`), and the open streams of each event."""

    room: WaitingRoom
    counts: Mapping[str, int]
    streams: Mapping[str, Sized]
    harder: Mapping[str, int] = field(default_factory=dict)  # challenges with harder work, by reason
    without_scripts: int = 0  # joins of forms that proved nothing

    def collect(self) -> Iterable[Metric]:
        """All metrics now, with those of the last state read of each room."""
        requests = CounterMetricFamily("frontrow_room_requests", "Requests answered, by endpoint", labels=["endpoint"])
        refused = CounterMetricFamily("frontrow_room_refusals", "Refusals, by endpoint", labels=["endpoint", "code"])
        for name, count in sorted(self.counts.items()):
            endpoint, _, code = name.partition(":")
            if code:
                refused.add_metric([endpoint, code], count)
            else:
                requests.add_metric([endpoint], count)
        yield requests
        yield refused
        harder = CounterMetricFamily("frontrow_room_harder_work", "Challenges with harder work", labels=["reason"])
        for reason in ("device", "network"):
            harder.add_metric([reason], self.harder.get(reason, 0))
        yield harder
        plain = CounterMetricFamily("frontrow_room_joins_without_scripts", "Joins by form that needed no proof of work")
        plain.add_metric([], self.without_scripts)
        yield plain
        service = CounterMetricFamily("frontrow_room_service", "What the service did", labels=["what"])
        for name, count in sorted(self.room.counts.items()):
            service.add_metric([name], count)
        yield service
        open_ = GaugeMetricFamily("frontrow_room_streams", "Open live streams", labels=["event"])
        for event, streams in sorted(self.streams.items()):
            open_.add_metric([event], len(streams))
        yield open_
        yield from _of_rooms([self.room.control.view(event) for event in self.streams])


GAUGES: tuple[tuple[str, str, Callable[[RoomView], float]], ...] = (
    ("waiting", "People waiting", lambda view: view.waiting),
    ("active", "People in the shop", lambda view: view.state.active),
    ("unclaimed", "People admitted who have not come yet", lambda view: view.unclaimed),
    ("capacity", "Most people in the shop at once", lambda view: view.state.config.capacity),
    ("rate_per_s", "Most people admitted per second", lambda view: view.state.config.rate_per_s),
    ("show_rate", "Share of the admitted who come", lambda view: view.show_rate),
    ("epoch", "Grows each time the store had to be rebuilt", lambda view: view.state.epoch),
    ("is_leader", "1 in the process that moves the window", lambda view: int(view.is_leader)),
    ("shop_limit", "Most people in the shop by its latency", lambda view: view.inflow.limit if view.inflow else 0),
    ("shop_p95_ms", "Reported p95 of the shop", lambda view: view.inflow.p95_ms if view.inflow else 0),
    ("shop_reporters", "Reporters heard lately", lambda view: view.inflow.reporters if view.inflow else 0),
    ("slides", "Slides so far", lambda view: view.state.slide_no),
)

EDGES = (("issued", "Last place issued"), ("hi", "Places up to here are called"), ("lo", "Places up to here are over"))


def _of_rooms(views: list[RoomView]) -> Iterable[Metric]:
    for name, about, read in GAUGES:
        gauge = GaugeMetricFamily(f"frontrow_room_{name}", about, labels=["event"])
        for view in views:
            gauge.add_metric([view.event], float(read(view)))
        yield gauge
    phases = GaugeMetricFamily("frontrow_room_phase", "1 for the phase the room is in", labels=["event", "phase"])
    lanes = {
        edge: GaugeMetricFamily(f"frontrow_room_lane_{edge}", about, labels=["event", "lane"]) for edge, about in EDGES
    }
    for view in views:
        for phase in Phase:
            phases.add_metric([view.event, phase.value], float(view.state.phase is phase))
        for rule, lane in zip(view.state.config.lanes, view.state.lanes, strict=True):
            for edge, gauge in lanes.items():
                gauge.add_metric([view.event, rule.name], getattr(lane, edge))
    yield phases
    yield from lanes.values()
