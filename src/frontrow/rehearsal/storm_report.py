"""What a storm has shown: as rows for the terminal, as JSON, and as one self-contained HTML page."""

from statistics import median
from typing import Any

from frontrow.rehearsal.report_page import PlotCurve, draw_plot, draw_plots, write_list, write_page, write_table
from frontrow.rehearsal.storm import StormResult
from frontrow.rehearsal.storm_record import LATENESS, WAIT, StormRecord, StormSecond

JOURNEY = ("page", "event", "join", "now-serving", "status", "claim", "map", "seats", "hold", "pay", "tickets")
NINES = (0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9)
PLOTTED = ("now-serving", "hold", "pay")
LATE_MS = 50.0  # a storm that is later than this measures itself
ARRIVAL_BINS = 20
MARKS = {True: "✓", False: "✗ NOT SO:", None: "– not checked:"}


def list_results(result: StormResult) -> list[tuple[str, str]]:
    """The figures that matter most, in the terminal and on the page."""
    record, took_s = result.record, max(result.took_s, 0.001)
    answered, refused = _count_requests(record), sum(record.refusals.values())
    return [
        ("fans came", f"{record.arrived:,}"),
        ("seats bought", f"{record.seats_bought:,} in {record.bookings:,} bookings"),
        ("requests", f"{answered:,}, {answered / took_s:,.0f} per second"),
        ("refusals", f"{refused:,}"),
        ("waited, median of the admitted", _seconds(median_wait_s(record))),
        ("slowest hold", _milliseconds(record, "hold", 100.0)),
        ("pay, 99 % within", _milliseconds(record, "pay", 99.0)),
        ("it took", f"{result.took_s:.0f} s"),
    ]


def median_wait_s(record: StormRecord) -> float | None:
    """The median wait from joining to one's turn."""
    return median(wait_s for _, wait_s in record.waits) if record.waits else None


def list_latencies(record: StormRecord) -> list[tuple[str, ...]]:
    """A row per step: how many, p50, p90, p99, p99.9 and the slowest, in milliseconds."""
    rows = record.latencies()
    names = [name for name in JOURNEY if name in rows]
    names += [name for name in rows if name not in (*JOURNEY, LATENESS, WAIT)]
    return [_latency_row(name, rows[name]) for name in names]


def _latency_row(name: str, row: dict[str, float]) -> tuple[str, ...]:
    times = (f"{row[column]:,.1f}" for column in ("p50_ms", "p90_ms", "p99_ms", "p99.9_ms", "max_ms"))
    return (name, f"{row['count']:,.0f}", *times)


def list_advice(result: StormResult) -> list[str]:
    """What the reader should know before trusting the figures."""
    record, lines = result.record, []
    late = record.latencies().get(LATENESS)
    if late is not None and late["p99_ms"] > LATE_MS:
        lines.append(
            f"The storm sent 1 % of its requests {late['p99_ms']:,.0f} ms late or later: this machine, or the bound of "
            f"{result.plan.connections:,} connections, is part of the latencies. Use more processes or connections."
        )
    if record.held_back:
        lines.append(
            f"{record.held_back:,} requests waited for the storm's own bound of {result.plan.requests_per_s:,.0f} "
            "per second (--max-rate)."
        )
    if not result.consent.counts_each_fan:
        lines.append(
            "The server counts all fans as one address, which may send "
            f"{result.consent.per_address}. Put this machine into server.trusted_proxies to count each fan by itself."
        )
    answered, refused = _count_requests(record), sum(record.refusals.values())
    if refused * 2 > answered > 0:
        most, count = record.refusals.most_common(1)[0]
        lines.append(
            f"{refused / answered:.0%} of the requests were refused, most of them with {most!r} ({count:,}): the "
            "figures say how the server refuses, not how it sells."
        )
    if not result.plan.pays:
        lines.append("The server takes real money, so nobody paid: fans held seats and gave them back.")
    return lines


def write_json(result: StormResult) -> dict[str, Any]:
    """All figures. `hdr` are the histograms themselves (HdrHistogram V2, base64), in microseconds."""
    record = result.record
    return {
        "url": f"{'https' if result.plan.target.tls else 'http'}://{result.plan.target.authority}",
        "event": result.plan.event_id,
        "people": result.plan.sale.people,
        "took_s": round(result.took_s, 3),
        "arrived": record.arrived,
        "bookings": record.bookings,
        "seats_bought": record.seats_bought,
        "seats_left_held": record.seats_left_held,
        "free_before": result.consent.free,
        "sold_before": result.consent.sold,
        "after": result.after._asdict() if result.after else None,
        "requests": _count_requests(record),
        "held_back": record.held_back,
        "wait_median_s": median_wait_s(record),
        "outcomes": dict(record.outcomes),
        "refusals": dict(record.refusals.most_common()),
        "latencies": record.latencies(),
        "hdr": {name: histogram.encode().decode() for name, histogram in record.histograms.items()},
        "seconds": [
            {"second": number, **{name: getattr(second, name) for name in StormSecond.__slots__}}
            for number, second in sorted(record.seconds.items())
        ],
        "checks": [{"what": check.what, "holds": check.holds, "detail": check.detail} for check in result.checks],
        "advice": list_advice(result),
    }


def write_storm_report(result: StormResult) -> str:
    """The page as text."""
    record = result.record
    seconds = [record.seconds.get(number, StormSecond()) for number in range(max(record.seconds, default=0) + 1)]
    checks = [f"{MARKS[check.holds]} {check.what}: {check.detail}." for check in result.checks] + list_advice(result)
    head = ("step", "requests", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "slowest ms")
    return write_page(
        f"A storm of {result.plan.sale.people:,} fans",
        f"Real requests to {result.plan.target.authority}, event {result.plan.event_id}; latencies from when each "
        "request was meant to be sent.",
        list_results(result),
        write_list("Checked at the end", checks),
        write_table("Latencies", head, list_latencies(record)),
        draw_plots(*_draw_all(record, seconds)),
        _write_counts("How the journeys ended", "end", record.outcomes.most_common()),
        _write_counts("Refusals by reason", "step and reason", record.refusals.most_common()),
    )


def _draw_all(record: StormRecord, seconds: list[StormSecond]) -> list[str]:
    """The plots; a curve per second of the storm."""
    xs = [float(number) for number in range(len(seconds))]
    below = "seconds of the storm"
    joined, entered, left, sold = (_running_total(seconds, name) for name in ("arrived", "entered", "left", "sold"))
    inside = [come - gone for come, gone in zip(entered, left, strict=True)]
    means = [second.total_us / max(1, second.requests) / 1000 for second in seconds]
    slowest = [second.slowest_us / 1000 for second in seconds]
    middles, waits = _waits_by_arrival(record)
    return [
        draw_plot(
            "Fans: came, entered the shop, inside now",
            below,
            PlotCurve("came", xs, joined),
            PlotCurve("entered", xs, entered),
            PlotCurve("inside", xs, inside),
        ),
        draw_plot("Sold seats", below, PlotCurve("sold", xs, sold)),
        draw_plot(
            "Requests per second",
            below,
            PlotCurve("answered", xs, [float(second.requests) for second in seconds]),
            PlotCurve("refused", xs, [float(second.refused) for second in seconds]),
        ),
        draw_plot(
            "Response times, in ms",
            below,
            PlotCurve("mean", xs, means),
            PlotCurve("slowest of the second", xs, slowest),
        ),
        draw_plot("Wait by time of arrival, in s", "seconds at which fans came", PlotCurve("median", middles, waits)),
        draw_plot(
            "Latency by percentile, in ms",
            "percent of the requests",
            *(
                PlotCurve(step, NINES, [at / 1000 for at in histogram.get_percentile_to_value_dict(NINES).values()])
                for step in PLOTTED
                if (histogram := record.histograms.get(step)) is not None
            ),
        ),
    ]


def _waits_by_arrival(record: StormRecord) -> tuple[list[float], list[float]]:
    """The median waits of fans who came at about the same time."""
    if not record.waits:
        return [], []
    first, last = min(record.waits)[0], max(record.waits)[0]
    width = max((last - first) / ARRIVAL_BINS, 1e-6)
    groups: dict[int, list[float]] = {}
    for arrived_s, wait_s in record.waits:
        groups.setdefault(min(ARRIVAL_BINS - 1, int((arrived_s - first) / width)), []).append(wait_s)
    return [first + (number + 0.5) * width for number in sorted(groups)], [median(groups[n]) for n in sorted(groups)]


def _running_total(seconds: list[StormSecond], name: str) -> list[float]:
    total, totals = 0.0, []
    for second in seconds:
        total += getattr(second, name)
        totals.append(total)
    return totals


def _write_counts(title: str, name: str, rows: list[tuple[str, int]]) -> str:
    return write_table(title, (name, "how many"), [(what, f"{count:,}") for what, count in rows]) if rows else ""


def _count_requests(record: StormRecord) -> int:
    return sum(second.requests for second in record.seconds.values())


def _seconds(value: float | None) -> str:
    return "nobody was admitted" if value is None else f"{value:.1f} s"


def _milliseconds(record: StormRecord, step: str, percentile: float) -> str:
    histogram = record.histograms.get(step)
    return "none" if histogram is None else f"{histogram.get_value_at_percentile(percentile) / 1000:,.1f} ms"
