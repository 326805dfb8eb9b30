"""`frontrow event webhooks add | list | remove`: where an organiser wants an event's facts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_deployment
from frontrow.core.errors import FrontrowError

if TYPE_CHECKING:  # the command's own group must load without the box office's libraries
    from frontrow.boxoffice.messages.webhook_endpoints import WebhookEndpoints

Answer = TypeVar("Answer")
app = typer.Typer(help="Webhooks to organisers.", no_args_is_help=True)


@app.command()
def add(
    event: str,
    url: Annotated[str, typer.Argument(help="https://…, a public address")],
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    organiser: Annotated[str, typer.Option(help="Whose it is; organisers do not wait for each other.")] = "org_default",
    fact: Annotated[list[str] | None, typer.Option(help="Only this fact; may be given often. Default: all.")] = None,
) -> None:
    """Register a webhook and print its id and secret; the secret is not shown again."""
    webhook = _with(
        (config, folder, ledger), lambda endpoints: endpoints.register(organiser, event, url, tuple(fact or ()))
    )
    typer.echo(f"{webhook.id}\n{webhook.secret}")


@app.command("list")
def list_command(
    event: str,
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
) -> None:
    """The webhooks of an event."""
    for one in _with((config, folder, ledger), lambda endpoints: endpoints.of_event(event)):
        typer.echo(f"{one.id}\t{one.organiser}\t{one.url}\t{', '.join(one.facts) or 'all facts'}")


@app.command()
def remove(
    webhook: str,
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Send nothing more to this webhook."""
    removed = _with((config, folder, ledger), lambda endpoints: endpoints.remove(webhook))
    typer.echo(f"{removed.id} removed")


def _with(
    where: tuple[str | None, str | None, str | None], act: "Callable[[WebhookEndpoints], Awaitable[Answer]]"
) -> Answer:
    from frontrow.app.command_services import open_webhook_endpoints

    async def run() -> Answer:
        async with open_webhook_endpoints(find_deployment(*where)) as endpoints:
            return await act(endpoints)

    try:
        return asyncio.run(run())
    except FrontrowError as error:
        typer.echo(f"frontrow event: {error.message}", err=True)
        raise typer.Exit(2) from None
