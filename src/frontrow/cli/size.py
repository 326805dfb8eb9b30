"""`frontrow size`: what a sale needs, from a rehearsal and our own benchmarks."""

import json
from typing import Annotated, Any

import typer

from frontrow.cli.deployment_options import ConfigOption
from frontrow.cli.rehearse import read_sale_plan
from frontrow.core.errors import FrontrowError


def size(
    people: Annotated[int | None, typer.Option(help="People that come.")] = None,
    seats: Annotated[int | None, typer.Option(help="Seats on sale.")] = None,
    capacity: Annotated[int | None, typer.Option(help="People in the shop at once (room.capacity).")] = None,
    window_size: Annotated[int | None, typer.Option(help="People admitted per slide (room.window_size).")] = None,
    arrivals: Annotated[str | None, typer.Option(help="spike, steady or bots.")] = None,
    config: ConfigOption = None,
    cdn: Annotated[
        bool, typer.Option("--cdn", help="A CDN answers what is public and the same for everybody.")
    ] = False,
    core_hour: Annotated[float, typer.Option(help="The price of a core for an hour.")] = 0.05,
    traffic_gb: Annotated[float, typer.Option(help="The price of a GB sent.")] = 0.08,
    hours: Annotated[float, typer.Option(help="How long everything is kept running.")] = 6.0,
    currency: Annotated[str, typer.Option(help="What the prices are in.")] = "EUR",
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
) -> None:
    """Servers, Redis, PostgreSQL, network and money that a sale needs, from our own benchmarks.

    The sale is rehearsed first. The costs were measured on one machine: measure yours with `make bench-api`,
    `python -m bench.work` and `python -m bench.costs`, and load what you built with `frontrow storm`.
    """
    from rich.console import Console
    from rich.table import Table

    from frontrow.rehearsal.cpu_costs import read_costs
    from frontrow.rehearsal.simulation import Simulation
    from frontrow.rehearsal.sizing import Prices, list_size, server_us_per_arrival, size_sale

    try:
        changes: dict[str, Any] = {"people": people, "seats": seats, "arrivals": arrivals}
        plan = read_sale_plan(config, room={"capacity": capacity, "window_size": window_size}, sale=changes)
        prices = Prices(core_hour, traffic_gb, hours, currency)
    except FrontrowError as error:
        raise typer.BadParameter(str(error)) from None
    costs = read_costs()
    simulation = Simulation(plan)
    simulation.run()
    sized = size_sale(simulation, costs, prices, cdn=cdn)
    if as_json:
        print(json.dumps(sized.to_dict(), indent=2))
        return
    console = Console()
    table = Table(
        "", "at the peak", "have", title=f"{plan.people:,} people, {plan.seats:,} seats", title_justify="left"
    )
    for row in list_size(sized):
        table.add_row(*row)
    console.print(table)
    lines = [
        f"This assumes that {sized.capacity:,} people are in the shop at once (room.capacity) and that "
        f"{sized.window_size:,} are admitted every {sized.interval_s:g} s (room.window_size). Set your own by "
        "--capacity and --window-size, or with --config."
    ]
    lines += [f"A person who comes and joins costs the servers {server_us_per_arrival(costs) / 1000:.1f} ms of CPU."]
    if not cdn:
        other = size_sale(simulation, costs, prices, cdn=True)
        lines.append(
            f"With a CDN in front (--cdn): {other.server.cores:,} server processes, {other.money:,.0f} {currency}."
        )
    lines.append("Measured on one machine; yours differs. docs/scaling.md says how to measure it.")
    for line in lines:
        console.print(f"• {line}", highlight=False, soft_wrap=True)
