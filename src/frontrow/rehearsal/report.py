"""The report of a rehearsed sale: figures, advice and plots on one page."""

from dataclasses import asdict
from datetime import datetime

from frontrow.rehearsal.figures import SaleFigures, say_duration
from frontrow.rehearsal.outcomes import list_outcomes
from frontrow.rehearsal.report_page import (
    PlotCurve,
    draw_bars,
    draw_plot,
    draw_plots,
    write_list,
    write_page,
    write_table,
)
from frontrow.rehearsal.sale_plan import SalePlan
from frontrow.shared.version import VERSION

# of the room: what a rehearsal does not use
LEFT_OUT = ("lanes", "message", "draw_salt", "shared_capacity", "codes_until_us", "one_place_per_person", "depth_cap")


def write_report(figures: SaleFigures, plan: SalePlan, made_at: datetime) -> str:
    """The page as text. It says which sale this was, so that it can be rehearsed again."""
    series = figures.series
    minutes = [at_s / 60 for at_s in series["time_s"]]
    groups = [group for group in figures.arrivals if group.median_s is not None]
    middles = [(group.from_s + group.to_s) / 120 for group in groups]
    chances = [group for group in figures.arrivals if group.people]
    plots = (
        draw_plot("People in the line", "minutes after the opening", PlotCurve("waiting", minutes, series["waiting"])),
        draw_plot(
            "Sold and held seats",
            "minutes after the opening",
            PlotCurve("sold", minutes, series["sold"]),
            PlotCurve("held", minutes, series["held"]),
        ),
        draw_plot(
            "Wait by time of arrival, in minutes",
            "minutes from the opening at which people came",
            PlotCurve("median", middles, [(group.median_s or 0) / 60 for group in groups]),
            PlotCurve("90 %", middles, [(group.p90_s or 0) / 60 for group in groups]),
        ),
        draw_plot(
            "Admitted per second", "minutes after the opening", PlotCurve("admitted", minutes, series["admitted_per_s"])
        ),
        draw_plot(
            "Fairness: share admitted by time of arrival, in %",
            "minutes from the opening at which people came",
            PlotCurve(
                "admitted",
                [(group.from_s + group.to_s) / 120 for group in chances],
                [100 * group.admitted / group.people for group in chances],
            ),
        ),
        draw_plot("People in the shop", "minutes after the opening", PlotCurve("inside", minutes, series["active"])),
        draw_bars(
            "Bots, in %", (("of the line", figures.bots_in_line * 100), ("of the seats", figures.bots_of_seats * 100))
        ),
        draw_plot(
            "Cost: cores of the servers", "minutes after the opening", PlotCurve("cores", minutes, series["cores"])
        ),
    )
    settings = list_settings(plan)
    return write_page(
        title_of(plan),
        "A rehearsal: simulated people, the server's own admission code. "
        f"Made {made_at:%Y-%m-%d %H:%M} UTC with seed {plan.seed} by Frontrow {VERSION}.",
        list_figures(figures),
        write_list("Advice", figures.advice),
        write_table("What became of everybody", ("", "people", "share"), list_outcomes(figures.outcomes)),
        draw_plots(*plots),
        draw_plots(
            *(write_table(f"Settings: [{name}]", ("setting", "value"), rows) for name, rows in settings.items())
        ),
    )


def title_of(plan: SalePlan) -> str:
    return f"A sale of {plan.seats:,} seats, rehearsed"


def list_settings(plan: SalePlan) -> dict[str, list[tuple[str, str]]]:
    """Every setting of the rehearsal and of its room, by the section of frontrow.toml that it is written in."""
    sale = [(name, _say_setting(value)) for name, value in asdict(plan).items() if name != "room"]
    room = []
    for name, value in asdict(plan.room).items():
        if name.endswith("_us") and name not in LEFT_OUT:
            room.append((name.removesuffix("_us") + "_s", _say_setting(value / 1e6)))
        elif name not in LEFT_OUT:
            room.append((name, _say_setting(value)))
    return {"rehearsal": sale, "room": room}


def _say_setting(value: object) -> str:
    if isinstance(value, dict):  # an outage
        return f"from {value['start_s']:g} s for {value['length_s']:g} s" if value["length_s"] else "none"
    if isinstance(value, tuple):
        return ", ".join(f"{one:g}" for one in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def list_figures(figures: SaleFigures) -> list[tuple[str, str]]:
    """What the summary says, in the terminal and on the page."""
    return [
        ("people", f"{figures.people:,}"),
        ("seats sold", f"{figures.seats_sold:,} of {figures.seats:,}"),
        ("every seat taken after", say_duration(figures.all_taken_s) if figures.all_taken_s is not None else "never"),
        ("sold out after", say_duration(figures.sold_out_s) if figures.sold_out_s is not None else "not sold out"),
        ("bookings", f"{figures.bookings:,}"),
        ("in the line at most", f"{figures.most_waiting:,}"),
        ("waited, median of the admitted", say_duration(figures.wait_median_s)),
        ("waited, 90 % less than", say_duration(figures.wait_p90_s)),
        ("gave up waiting", f"{figures.gave_up:,}"),
        ("came in and found nothing", f"{figures.in_vain:,}"),
        ("bots of the line, of the seats", f"{figures.bots_in_line:.0%}, {figures.bots_of_seats:.0%}"),
        ("cores at the peak", f"{figures.peak_cores:.1f}"),
        ("limited by", figures.bottleneck),
    ]
