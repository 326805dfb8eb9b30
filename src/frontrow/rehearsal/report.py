"""The report of a rehearsed sale: figures, advice and plots on one page."""

from frontrow.rehearsal.figures import SaleFigures, say_duration
from frontrow.rehearsal.report_page import PlotCurve, draw_bars, draw_plot, draw_plots, write_list, write_page


def write_report(figures: SaleFigures, title: str) -> str:
    """The page as text."""
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
    return write_page(
        title,
        "A rehearsal: simulated people, the server's own admission code.",
        list_figures(figures),
        write_list("Advice", figures.advice),
        draw_plots(*plots),
    )


def list_figures(figures: SaleFigures) -> list[tuple[str, str]]:
    """What the summary says, in the terminal and on the page."""
    return [
        ("people came", f"{figures.people:,}"),
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
