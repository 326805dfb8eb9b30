"""`frontrow ledger backup | restore`: a whole copy of the ledger in a file, and back."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from frontrow.app.ledger_tools import back_up_ledger, restore_ledger, verify_ledger
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_direct_ledger
from frontrow.core.errors import FrontrowError


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
    """Make a ledger of a backup, then prove it whole. Stop every server and worker first."""
    try:
        url = find_direct_ledger(config, folder, ledger)
        version = restore_ledger(file, url, force=force)
        wrong, read = asyncio.run(verify_ledger(url, auto_migrate=True))
    except FrontrowError as error:
        raise _fail(error) from None
    for line in wrong:
        typer.echo(line)
    typer.echo(f"schema {version}; {len(wrong)} problems; {read} audit entries read")
    if wrong:
        raise typer.Exit(1)


def _fail(error: FrontrowError) -> typer.Exit:
    typer.echo(f"frontrow ledger: {error.message}", err=True)
    return typer.Exit(2)
