"""`frontrow storm-token`: the operator's consent to a storm on their own server."""

import asyncio
from typing import Annotated

import typer

from frontrow.app.storm_tokens import make_storm_event, make_storm_token, read_server_settings
from frontrow.cli.deployment_options import ConfigOption, FolderOption
from frontrow.core.errors import FrontrowError

MAX_MINUTES = 24 * 60


def storm_token(
    event: Annotated[str, typer.Argument(help="The event that may be stormed, like evt_….")] = "",
    seats: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Put a made-up event of so many seats on sale for it.")
    ] = None,
    minutes: Annotated[int, typer.Option(min=1, max=MAX_MINUTES, help="The token ends then.")] = 60,
    config: ConfigOption = None,
    folder: FolderOption = None,
) -> None:
    """Print a token that lets `frontrow storm` load this server: one event, for an hour."""
    if bool(event) == (seats is not None):
        raise typer.BadParameter("name an event, or give --seats to make one up")
    try:
        settings = read_server_settings(config, folder)
        event_id = event or asyncio.run(make_storm_event(settings, seats or 0))
        typer.echo(make_storm_token(settings, event_id, minutes * 60))
    except FrontrowError as error:
        typer.echo(f"frontrow storm-token: {error.message}", err=True)
        raise typer.Exit(2) from None
