"""`frontrow ledger backup | restore`: a whole copy of the ledger in a file, and back."""

import asyncio
import contextlib
from pathlib import Path
from typing import Annotated

import typer

from frontrow.app.ledger_tools import back_up_ledger, find_ledger_file, restore_ledger, verify_ledger
from frontrow.cli.deployment_options import (
    ConfigOption,
    FolderOption,
    LedgerOption,
    find_deployment,
    find_direct_ledger,
)
from frontrow.cli.folder_lock import no_server
from frontrow.core.errors import FrontrowError
from frontrow.settings.deployment import LEDGER_FILE, Deployment


def backup(
    file: Annotated[Path, typer.Argument(help="Where to; must not exist.")],
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Copy the ledger into a file while it is in use."""
    try:
        size = back_up_ledger(find_direct_ledger(config, folder, ledger), file)
    except FrontrowError as error:
        raise _fail(error) from None
    typer.echo(f"{file}: {size:,} bytes")


def restore(
    file: Annotated[Path, typer.Argument(help="A file made by `frontrow ledger backup`.")],
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    force: Annotated[bool, typer.Option(help="Replace the ledger that is there.")] = False,
) -> None:
    """Make a ledger of a backup, then prove it whole. Refused while servers, workers or commands use the ledger."""
    try:
        here = find_deployment(config, folder, ledger)
        url = here.direct_ledger_url
        with contextlib.ExitStack() as stack:
            for home in _homes(here, ledger):
                stack.enter_context(no_server(home))
            version = restore_ledger(file, url, force=force)
            wrong, read = asyncio.run(verify_ledger(url, auto_migrate=True))
    except FrontrowError as error:
        raise _fail(error) from None
    for line in wrong:
        typer.echo(line)
    typer.echo(f"schema {version}; {len(wrong)} problems; {read} audit entries read")
    if wrong:
        raise typer.Exit(1)
    typer.echo(
        "What was sold after the backup is not in it: `frontrow ledger reconcile` finds payments it does not know."
    )


def _homes(here: Deployment, ledger: str | None) -> list[Path]:
    """The folders whose server sells into this SQLite ledger."""
    file = find_ledger_file(here.direct_ledger_url)
    if file is None:
        return []  # PostgreSQL: its servers are seen by their connections
    homes = {file.parent.resolve()} if file.name == LEDGER_FILE else set()
    return sorted(homes | ({here.folder.resolve()} if ledger is None else set()))


def _fail(error: FrontrowError) -> typer.Exit:
    typer.echo(f"frontrow ledger: {error.message}", err=True)
    return typer.Exit(2)
