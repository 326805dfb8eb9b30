"""`frontrow ledger backup | restore`: a whole copy of the ledger in a file, and back."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from frontrow.boxoffice.adapters.ledger import backups
from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.errors import FrontrowError

Url = Annotated[
    str,
    typer.Option("--ledger", envvar="FRONTROW_LEDGER_URL", help="sqlite:///file.db or postgresql://user@host/name"),
]


def backup(
    file: Annotated[Path, typer.Argument(help="Where to; must not exist.")], ledger: Url = "sqlite:///frontrow.db"
) -> None:
    """Copy the ledger into a file while it is in use."""
    try:
        size = backups.backup(ledger, file)
    except FrontrowError as error:
        raise _fail(error) from None
    typer.echo(f"{file}: {size:,} bytes")


def restore(
    file: Annotated[Path, typer.Argument(help="A file made by `frontrow ledger backup`.")],
    ledger: Url = "sqlite:///frontrow.db",
    force: Annotated[bool, typer.Option(help="Replace the ledger that is there.")] = False,
) -> None:
    """Make a ledger of a backup, then prove it whole. Stop every server and worker first."""
    try:
        version = backups.restore(file, ledger, force=force)
        wrong, read = asyncio.run(_verified(ledger))
    except FrontrowError as error:
        raise _fail(error) from None
    for line in wrong:
        typer.echo(line)
    typer.echo(f"schema {version}; {len(wrong)} problems; {read} audit entries read")
    if wrong:
        raise typer.Exit(1)


async def _verified(url: str) -> tuple[list[str], int]:
    ledger = await open_ledger(url, auto_migrate=True)
    try:
        return await verify(ledger.store)
    finally:
        await ledger.aclose()


def _fail(error: FrontrowError) -> typer.Exit:
    typer.echo(f"frontrow ledger: {error.message}", err=True)
    return typer.Exit(2)
