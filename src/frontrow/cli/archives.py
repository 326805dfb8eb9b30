"""`frontrow ledger archive`: past events out of the ledger into files, and back."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from frontrow.app.ledger_tools import archive_event, find_past_events, restore_event
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_deployment
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.core.errors import FrontrowError, InvalidInput, Refused


def archive(
    before: Annotated[
        str | None, typer.Option(help="Archive all events that were over before this day (2026-01-31, UTC).")
    ] = None,
    event: Annotated[str | None, typer.Option(help="Archive this event.")] = None,
    to: Annotated[
        Path | None, typer.Option(help="The folder of the files; without it `archive` of the server's.")
    ] = None,
    restore: Annotated[Path | None, typer.Option(help="Put the event of this file back.")] = None,
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Move past events whose money is settled into files, one per event; or put one back."""
    try:
        if sum(given is not None for given in (before, event, restore)) != 1:
            raise InvalidInput("give one of --before, --event and --restore")
        deployment, now_us = find_deployment(config, folder, ledger), SystemClock()()
        url = deployment.direct_ledger_url
        if restore is not None:
            back = asyncio.run(restore_event(url, restore, now_us))
            typer.echo(f"{back.event_id}: {sum(back.rows.values()):,} rows are back; the file stays")
            return
        events = (
            [event] if event is not None else asyncio.run(find_past_events(url, _midnight_us(before or ""), now_us))
        )
        left = 0
        for event_id in events:
            try:
                done = asyncio.run(archive_event(url, event_id, to or deployment.folder / "archive", now_us))
                typer.echo(f"{event_id}: {sum(done.rows.values()):,} rows in {done.path}, sha256 {done.sha256}")
            except Refused as error:
                left += 1
                typer.echo(f"{event_id}: not archived: {error.message}", err=True)
        typer.echo(f"{len(events) - left} events archived, {left} left in the ledger")
    except FrontrowError as error:
        typer.echo(f"frontrow ledger: {error.message}", err=True)
        raise typer.Exit(2) from None
    if left:
        raise typer.Exit(1)


def _midnight_us(day: str) -> int:
    try:
        return round(datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) * US_PER_S
    except ValueError:
        raise InvalidInput(f"{day[:40]!r} is no day; one looks like 2026-01-31", param="before") from None
