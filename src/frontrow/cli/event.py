"""`frontrow event plan …`: make, import, export and draw seating plans. `frontrow event webhooks …` is joined here."""

import json
import sys
import time
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer

from frontrow.boxoffice.seats.formats.csv_plans import from_csv
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan, plan_from_document
from frontrow.boxoffice.seats.model.venues import Plan, SeatFlag, SectionKind
from frontrow.boxoffice.seats.plan_svg import palette_colours, to_svg
from frontrow.cli.webhooks import app as webhooks_app
from frontrow.core.errors import ConfigError, FrontrowError, InvalidInput

app = typer.Typer(help="Events and their seating plans.", no_args_is_help=True)
plan_app = typer.Typer(help="Seating plans: generate, import, export, show.", no_args_is_help=True)
app.add_typer(plan_app, name="plan")
app.add_typer(webhooks_app, name="webhooks")

OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="File to write; standard output without it.")]
FileArgument = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True)]


class Kind(StrEnum):
    STADIUM = "stadium"
    ARENA = "arena"
    THEATRE = "theatre"
    STANDING = "standing"


class Format(StrEnum):
    FRONTROW = "frontrow"
    PRETIX = "pretix"


@app.callback()
def root() -> None:
    """Events and their seating plans."""


@plan_app.command("generate")
def generate_command(
    kind: Kind, seats: Annotated[int, typer.Option(help="Exactly so many seats.")] = 50_000, out: OutOption = None
) -> None:
    """Make up a venue and write its plan document."""
    began_s = time.perf_counter()
    try:
        plan = generate(kind.value, seats)
    except FrontrowError as error:
        _fail(error)
    _say(f"{plan.name}: {plan.size:,} seats in {time.perf_counter() - began_s:.2f} s")
    _write(plan_bytes(plan), out)


@plan_app.command("import")
def import_command(
    file: FileArgument,
    out: OutOption = None,
    name: Annotated[str, typer.Option(help="Name of a plan from CSV.")] = "",
) -> None:
    """Read a pretix seating plan (.json) or a table (.csv) and write its plan document."""
    try:
        plan, notes = read_plan(file, name)
    except FrontrowError as error:
        _fail(error)
    for note in notes:
        _say(f"note: {note}")
    _say(f"{plan.name}: {plan.size:,} seats, {len(plan.sections)} sections, tiers {', '.join(plan.tiers)}")
    _write(plan_bytes(plan), out)


@plan_app.command("export")
def export_command(
    file: FileArgument,
    out: OutOption = None,
    to: Annotated[Format, typer.Option("--format", help="frontrow (lossless) or pretix.")] = Format.PRETIX,
) -> None:
    """Write a plan document as pretix seating-plan JSON."""
    try:
        plan, _ = read_plan(file)
        body = plan_bytes(plan) if to is Format.FRONTROW else _pretty(_pretix().to_pretix(plan, palette_colours(plan)))
    except FrontrowError as error:
        _fail(error)
    _write(body, out)


@plan_app.command("show")
def show_command(
    file: FileArgument,
    out: OutOption = None,
    states: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Seat-state snapshot (FSS1) to colour by.")
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Figures as JSON instead of a picture.")] = False,
) -> None:
    """Draw a plan as SVG, coloured by price tier or by the states of a snapshot."""
    from frontrow.boxoffice.seats.model.map_format import read_snapshot

    try:
        plan, _ = read_plan(file)
        of_seats = read_snapshot(states.read_bytes(), plan.size).states if states else None
        body = _pretty(figures(plan)) if summary else to_svg(plan, of_seats).encode()
    except FrontrowError as error:
        _fail(error)
    _write(body, out)


def read_plan(file: Path, name: str = "") -> tuple[Plan, list[str]]:
    """The plan in a file: a plan document, a pretix plan or a CSV table, told apart by its content."""
    body = file.read_bytes()
    if file.suffix.lower() == ".csv":
        return from_csv(_text(body), name or file.stem), []
    try:
        document = json.loads(_text(body), parse_constant=_no_constant)
    except ValueError as error:
        raise InvalidInput(f"{file.name} is neither CSV nor JSON: {error}", param="file") from None
    if isinstance(document, dict) and "zones" in document:
        plan, notes = _pretix().from_pretix(document)
        return plan, notes
    return (decode_plan(body) if isinstance(document, dict) else plan_from_document(document)), []


def figures(plan: Plan) -> dict[str, Any]:
    """What `show --summary` prints."""
    flags = {flag.name.lower(): sum(1 for seat in plan.seats if seat.flags & flag) for flag in SeatFlag if flag.name}
    return {
        "name": plan.name,
        "hash": digest(plan_bytes(plan)),
        "seats": plan.size,
        "sections": len(plan.sections),
        "areas": sum(1 for section in plan.sections if section.kind is SectionKind.AREA),
        "rows": sum(len(section.rows) for section in plan.sections),
        "tiers": {tier: sum(1 for seat in plan.seats if seat.tier == tier) for tier in plan.tiers},
        "flags": flags,
    }


def _pretix() -> ModuleType:
    """The pretix module; its libraries are needed for its files only, not to have a command line."""
    try:
        from frontrow.boxoffice.seats.formats import pretix_format as pretix
    except ImportError:
        raise ConfigError("pretix files need the box office's libraries: pip install 'frontrow[boxoffice]'") from None
    return pretix


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the file must be UTF-8: {error}", param="file") from None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _pretty(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _fail(error: FrontrowError) -> NoReturn:
    _say(f"error: {error.message}")
    raise typer.Exit(1)


def _write(body: bytes, out: Path | None) -> None:
    if out is None:
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
    else:
        out.write_bytes(body)
        _say(f"wrote {out} ({len(body):,} bytes)")
