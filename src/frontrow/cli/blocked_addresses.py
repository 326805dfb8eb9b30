"""`frontrow ledger allow-address`: write again to an address that bounced, whose reader complained or answered STOP."""

import asyncio
from typing import Annotated

import typer

from frontrow.app.ledger_tools import opened_ledger
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_ledger
from frontrow.core.clock import SystemClock
from frontrow.core.errors import FrontrowError


def allow_address(
    address: Annotated[str, typer.Argument(help="An e-mail address, or a phone number like +436641234567.")],
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Allow messages to an address that is blocked. Exit code 1 when it was not."""

    async def allow() -> bool:
        async with opened_ledger(find_ledger(config, folder, ledger)) as books:
            return await books.messages.unblock("email" if "@" in address else "sms", address, SystemClock()())

    try:
        was_blocked = asyncio.run(allow())
    except FrontrowError as error:
        typer.echo(f"frontrow ledger: {error.message}", err=True)
        raise typer.Exit(2) from None
    if not was_blocked:
        typer.echo(f"{address} was not blocked", err=True)
        raise typer.Exit(1)
    typer.echo(f"{address} gets messages again")
