"""`frontrow door bundle | check | sync`: take an event along, verify tickets without a network, compare gates."""

import asyncio
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from frontrow.boxoffice.gate.gate_bundle import read_bundle, write_bundle
from frontrow.boxoffice.gate.gate_check import MAX_LOG_LINES, VERDICT_TEXTS, Gate, GateAnswer, GateVerdict, ScanLog
from frontrow.boxoffice.gate.model.scans import DuplicateScan, Scan, find_duplicates
from frontrow.cli.deployment_options import (
    ConfigOption,
    FolderOption,
    LedgerOption,
    find_deployment,
    find_ledger,
)
from frontrow.core.clock import WallClock
from frontrow.core.errors import FrontrowError

HANDED_IN: Final = 1_000  # scans a call
app = typer.Typer(help="The gate: check tickets offline, compare gates.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, one object per line.")]


@app.command()
def bundle(
    event: Annotated[str, typer.Argument(help="The event's id.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("gate.json"),
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    keys: Annotated[
        Path | None,
        typer.Option(envvar="FRONTROW_TICKET_KEYS", help="A ring of ticket keys; without it the server's."),
    ] = None,
) -> None:
    """Write what a gate takes along: public keys, seats and the signed revocation list."""
    from frontrow.app.command_services import make_gate_bundle

    try:
        taken = asyncio.run(make_gate_bundle(find_deployment(config, folder, ledger), event, keys))
    except FrontrowError as error:
        _fail(error.message)
    write_bundle(taken, out)
    typer.echo(f"{taken.name}: {len(taken.seats):,} seats, {len(taken.revocations.ids):,} revoked tickets -> {out}")


@app.command()
def check(
    codes: Annotated[list[str] | None, typer.Argument(help="Ticket codes; from standard input without any.")] = None,
    file: Annotated[Path, typer.Option("--bundle", "-b", help="What `door bundle` wrote.")] = Path("gate.json"),
    gate: Annotated[str, typer.Option(help="This gate's name.")] = "gate",
    log: Annotated[Path | None, typer.Option(help="Scan log of this gate; without it nothing is remembered.")] = None,
    leaving: Annotated[
        bool, typer.Option("--exit", help="This is an exit: record who leaves and may come back.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Verify tickets offline and record the admissions, or with --exit who leaves. Exit code 1 when one was refused."""
    try:
        at_gate = Gate(read_bundle(file), gate, ScanLog(log) if log else None)
    except FrontrowError as error:
        _fail(error.message)
    clock, refused = WallClock(), 0
    for code in codes or _lines():
        began_ns = time.perf_counter_ns()
        try:
            answer = at_gate.let_out(code, clock()) if leaving else at_gate.check(code, clock())
        except FrontrowError as error:
            _fail(error.message)
        took_ms = (time.perf_counter_ns() - began_ns) / 1e6
        refused += not answer.accepted
        typer.echo(_format_answer(answer, took_ms, as_json))
    if refused:
        raise typer.Exit(1)


@app.command()
def sync(
    logs: Annotated[list[Path], typer.Argument(help="Scan logs of the gates.", exists=True, dir_okay=False)],
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    as_json: AsJson = False,
) -> None:
    """Compare the gates' logs: tickets that were let in more than once. Exit code 1 when there are any.

    Where there is a ledger, the scans are handed in to it as well.
    """
    from frontrow.app.ledger_tools import is_there

    try:
        url = find_ledger(config, folder, ledger)
        known = ledger is not None or is_there(url)
        scans = [scan for log in logs for scan in ScanLog(log).scans()]
        found = {one.ticket_id: one for one in find_duplicates(scans)}
        if known:
            found |= {one.ticket_id: one for one in asyncio.run(_hand_in(scans, url))}
    except FrontrowError as error:
        _fail(error.message)
    for one in found.values():
        typer.echo(_duplicate(one, as_json))
    if not as_json:
        typer.echo("handed in to the ledger" if known else "compared with each other; there is no ledger here")
        typer.echo(f"{len(scans):,} scans, {len(found):,} tickets let in more than once")
    if found:
        raise typer.Exit(1)


def _lines() -> Iterator[str]:
    for number, line in enumerate(sys.stdin):
        if number >= MAX_LOG_LINES:
            return
        if line.strip():
            yield line.strip()


def _format_answer(answer: GateAnswer, took_ms: float, as_json: bool) -> str:
    if as_json:
        first = answer.first_scan
        return json.dumps(
            {
                "verdict": answer.verdict,
                "accepted": answer.accepted,
                "ticket": answer.ticket_id,
                "seat": answer.seat,
                "type": answer.type_name,
                "disputed": answer.disputed,
                "first_gate": first.gate if first else None,
                "took_ms": round(took_ms, 3),
            }
        )
    words = [VERDICT_TEXTS[answer.verdict], answer.seat, answer.type_name, answer.ticket_id]
    if answer.verdict is GateVerdict.ALREADY_IN and answer.first_scan is not None:
        words.append(f"first at {answer.first_scan.gate}")
    if answer.disputed and answer.accepted:
        words.append("its money is disputed")
    return f"{'OK' if answer.accepted else 'NO'}  {'  '.join(word for word in words if word)}  ({took_ms:.2f} ms)"


def _duplicate(one: DuplicateScan, as_json: bool) -> str:
    if as_json:
        return json.dumps({"ticket": one.ticket_id, "scans": [[scan.gate, scan.at_us] for scan in one.scans]})
    return f"{one.ticket_id}: {', '.join(scan.gate for scan in one.scans)}"


async def _hand_in(scans: list[Scan], url: str) -> Iterable[DuplicateScan]:
    from frontrow.app.ledger_tools import opened_ledger

    async with opened_ledger(url) as ledger:
        found: list[DuplicateScan] = []
        for start in range(0, len(scans), HANDED_IN):
            found += await ledger.tickets.record_scans(scans[start : start + HANDED_IN])
        return found


def _fail(message: str) -> NoReturn:
    typer.echo(f"frontrow door: {message}", err=True)
    raise typer.Exit(2)
