"""`frontrow rehearse`: a sale of millions, simulated before it happens."""

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frontrow.cli.deployment_options import ConfigOption
from frontrow.core import settings_loader
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.model.config import RoomConfig

if TYPE_CHECKING:
    from frontrow.rehearsal.sale_plan import SalePlan


def rehearse(
    config: ConfigOption = None,
    people: Annotated[int | None, typer.Option(help="Identities that join, bots included.")] = None,
    seats: Annotated[int | None, typer.Option(help="Seats on sale.")] = None,
    arrivals: Annotated[str | None, typer.Option(help="spike, steady or bots.")] = None,
    bots: Annotated[float | None, typer.Option(help="Share of the identities that are bots, like 0.2.")] = None,
    capacity: Annotated[int | None, typer.Option(help="People in the shop at once (room.capacity).")] = None,
    window_size: Annotated[int | None, typer.Option(help="People admitted per slide (room.window_size).")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed is the same sale.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots here.")] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write all figures here; - for standard output.")
    ] = None,
) -> None:
    """Simulate a sale of millions before it happens: waits, fairness, bots, what limits it, what to set."""
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from frontrow.rehearsal.cost_model import read_costs
    from frontrow.rehearsal.figures import read_figures
    from frontrow.rehearsal.outcomes import list_outcomes
    from frontrow.rehearsal.report import list_figures, title_of, write_report
    from frontrow.rehearsal.simulation import Simulation

    console = Console(stderr=as_json is not None and str(as_json) == "-")
    try:
        sale = {"people": people, "seats": seats, "arrivals": arrivals, "bots": bots, "seed": seed}
        plan = read_sale_plan(config, room={"capacity": capacity, "window_size": window_size}, sale=sale)
    except FrontrowError as error:
        raise typer.BadParameter(str(error)) from None
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(f"{plan.people:,} people gather …", total=1.0)
        simulation = Simulation(plan)
        progress.update(task, description="the sale …")
        simulation.run(lambda share: progress.update(task, completed=share))
        figures = read_figures(simulation, read_costs())
    made_at = datetime.now(UTC)
    summary = Table(title=f"{title_of(plan)} (seed {plan.seed})", show_header=False, title_justify="left")
    for name, value in list_figures(figures):
        summary.add_row(name, value)
    console.print(summary)
    everybody = Table(title="What became of everybody", show_header=False, title_justify="left")
    everybody.add_column()
    for _ in ("people", "share"):
        everybody.add_column(justify="right")
    *rows, total = list_outcomes(figures.outcomes)
    for row in rows:
        everybody.add_row(*row)
    everybody.add_section()
    everybody.add_row(*total)
    console.print(everybody)
    for line in figures.advice:
        console.print(f"• {line}", highlight=False)
    if html is not None:
        html.write_text(write_report(figures, plan, made_at))
        console.print(f"The report: {html}", highlight=False)
    if as_json is not None:
        about = {"made_at": made_at.isoformat(timespec="seconds"), "settings": asdict(plan)}
        text = json.dumps(about | figures.to_dict(), indent=2)
        if str(as_json) == "-":
            print(text)
        else:
            as_json.write_text(text + "\n")


def read_sale_plan(config: str | None, *, room: dict[str, Any], sale: dict[str, Any]) -> "SalePlan":
    """The plan of a frontrow.toml, with what the command line says instead (None: nothing)."""
    from frontrow.rehearsal.sale_plan import SalePlan

    of_room, table = _read_config(config)
    plan = SalePlan.from_dict(table, of_room.changed(**_given(room)))
    return plan.changed(**_given(sale))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _read_config(path: str | None) -> tuple[RoomConfig, dict[str, Any]]:
    """The room and the rehearsal's table of a frontrow.toml."""
    from frontrow.rehearsal.sale_plan import SalePlan

    tables = settings_loader.read_tables(path)
    unused = sorted(name for name in os.environ if name.startswith("FRONTROW_REHEARSAL_"))
    if unused:
        raise ConfigError(f"{unused[0]} is not a setting; write [rehearsal] into a frontrow.toml", param=unused[0])
    if not tables and not any(name.startswith("FRONTROW_ROOM_") for name in os.environ):
        return SalePlan().room, {}
    settings = settings_loader.load(RoomSettings, "room", tables={"room": tables.get("room", {})})
    return settings.config(), dict(tables.get("rehearsal", {}))
