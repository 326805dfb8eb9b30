"""`frontrow rehearse`: a sale of millions before it happens; with `--chaos`, small ones in which things fail."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from frontrow.cli.deployment_options import ConfigOption
from frontrow.core import settings_loader
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.model.config import RoomConfig

if TYPE_CHECKING:
    from frontrow.rehearsal.bot_attack import BotAttack, Check
    from frontrow.rehearsal.sale_plan import SalePlan
    from frontrow.simulation.scene import Scene

MOST_ROWS: Final = 24  # of a table


def rehearse(
    config: ConfigOption = None,
    people: Annotated[int | None, typer.Option(help="Identities that join, bots included.")] = None,
    seats: Annotated[int | None, typer.Option(help="Seats on sale.")] = None,
    arrivals: Annotated[str | None, typer.Option(help="spike, steady or bots.")] = None,
    bots: Annotated[float | None, typer.Option(help="Share of the identities that are bots, like 0.2.")] = None,
    capacity: Annotated[int | None, typer.Option(help="People in the shop at once (room.capacity).")] = None,
    window_size: Annotated[int | None, typer.Option(help="People admitted per slide (room.window_size).")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed is the same sale.")] = None,
    chaos: Annotated[
        bool,
        typer.Option("--chaos", help="Play small sales in which calls are lost, stores forget and processes crash."),
    ] = False,
    histories: Annotated[int, typer.Option(help="How many of them.", min=1, max=1_000_000)] = 100,
    jobs: Annotated[int, typer.Option(help="In so many processes; 0: one per core.", min=0, max=256)] = 0,
    red_team: Annotated[
        bool,
        typer.Option("--red-team", help="Bots with many addresses attack: their share of places after each check."),
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots here.")] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write all figures here; - for standard output.")
    ] = None,
) -> None:
    """Simulate a sale of millions before it happens: waits, fairness, bots, what limits it, what to set.

    With --chaos: the whole platform in virtual time, two servers and two workers, in many small sales. Every law of
    seats and money is checked after each step. [room] and [rehearsal.chaos] of frontrow.toml say what is played.

    With --red-team: 1 million bots with 50,000 addresses against 1 million people at the entrance of the room.
    [rehearsal.bot_attack] says what the bots have.
    """
    if red_team:
        others = {"arrivals": arrivals, "bots": bots, "seats": seats, "html": html, "json": as_json}
        refused = [f"--{name}" for name, value in others.items() if value is not None]
        if refused or chaos:
            name = refused[0] if refused else "--chaos"
            raise typer.BadParameter(f"{name} is not for --red-team; write [rehearsal.bot_attack] into a frontrow.toml")
        _play_attack(config, {"people": people, "seed": seed})
        return
    if chaos:
        others = {"people": people, "arrivals": arrivals, "bots": bots, "html": html, "json": as_json}
        refused = [f"--{name}" for name, value in others.items() if value is not None]
        if refused:
            raise typer.BadParameter(f"{refused[0]} is not for --chaos; write [rehearsal.chaos] into a frontrow.toml")
        room = {"capacity": capacity, "window_size": window_size}
        raise typer.Exit(_play_histories(config, room, seats, range(seed or 0, (seed or 0) + histories), jobs))
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from frontrow.rehearsal.cpu_costs import read_costs
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


def _play_attack(config: str | None, given: dict[str, Any]) -> None:
    """Play it with a progress bar and print the table."""
    from rich.console import Console
    from rich.progress import Progress

    from frontrow.rehearsal.bot_attack import build_table, play_attack

    console = Console()
    try:
        plan = read_attack(config, given)
    except FrontrowError as error:
        raise typer.BadParameter(str(error)) from None
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(f"{plan.bots:,} bots against {plan.people:,} people …", total=1.0)
        results = list(play_attack(plan, make_limit, lambda share: progress.update(task, completed=share)))
    console.print(build_table(plan, results))


def make_limit(text: str) -> "Check":
    """A limit of this quota in simulated time."""
    from frontrow.limits import Limiter, Quota

    limiter = Limiter(Quota.parse(text))
    return lambda key, at_us: limiter.check(key, now_us=at_us).allowed


def read_attack(config: str | None, given: dict[str, Any]) -> "BotAttack":
    """The attack of [rehearsal.bot_attack]; the entrance's limits are those of [room]."""
    from frontrow.rehearsal.bot_attack import BotAttack

    tables = settings_loader.read_tables(config)
    room = settings_loader.load(RoomSettings, "room", tables={"room": tables.get("room", {})})
    entrance = {"per_ip": room.per_ip, "per_device": room.per_device, "max_number": room.human_max_number}
    own = tables.get("rehearsal", {}).get("bot_attack", {})
    return BotAttack.from_dict({**entrance, **own, **_given(given)})


def _play_histories(config: str | None, room: dict[str, Any], seats: int | None, seeds: range, jobs: int) -> int:
    """Play them with a progress bar. Returns the exit code: 1 if a law was broken."""
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from frontrow.simulation.runs import Tally, play_many, replay_command

    console = Console()
    try:
        scene = read_scene(config, room, {"seats": seats})
    except FrontrowError as error:
        raise typer.BadParameter(str(error)) from None
    tally, began_s = Tally(seeds.start), time.perf_counter()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(f"{len(seeds):,} sales in which things fail …", total=len(seeds))
        for result in play_many(seeds, jobs or os.cpu_count() or 1, scene=scene):
            tally.add(result)
            progress.advance(task)
            if result.broken:
                replay = replay_command(result.seed, config or "")
                progress.console.print(f"{result.broken}\nreplay: {replay}", markup=False)
    tally.took_s = time.perf_counter() - began_s
    for title, counts in (("What happened", tally.reached), ("What failed meanwhile", tally.faults)):
        table = Table(title=title, show_header=False, title_justify="left")
        table.add_column()
        table.add_column(justify="right")
        for name, count in sorted(counts.items(), key=lambda one: -one[1])[:MOST_ROWS]:
            table.add_row(name, f"{count:,}")
        console.print(table)
    console.print(tally.closing_line(), highlight=False)
    return 1 if tally.failed else 0


def read_scene(config: str | None, room: dict[str, Any], scene: dict[str, Any]) -> "Scene":
    """What to play: the room of a frontrow.toml and its table [rehearsal.chaos]; without them the simulation's own."""
    from frontrow.simulation.scene import ROOM, Scene

    tables = settings_loader.read_tables(config)
    own = dict(tables.get("rehearsal", {}).get("chaos", {}))
    known = {one.name for one in fields(Scene)} - {"room"}
    unknown = sorted(own.keys() - known)
    if unknown:
        raise ConfigError(
            f"[rehearsal.chaos] has no field {unknown[0]}; it knows {', '.join(sorted(known))}", param=unknown[0]
        )
    base = _read_room(tables) if "room" in tables else ROOM
    return Scene(room=base.changed(draw_salt=ROOM.draw_salt, **_given(room)), **{**own, **_given(scene)})


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
    table = dict(tables.get("rehearsal", {}))
    table.pop("chaos", None)
    table.pop("bot_attack", None)
    return _read_room(tables), table


def _read_room(tables: Mapping[str, Any]) -> RoomConfig:
    return settings_loader.load(RoomSettings, "room", tables={"room": tables.get("room", {})}).config()
