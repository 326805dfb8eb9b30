"""`frontrow storm-token`: the operator's consent to a storm on their own server."""

import asyncio
import time
from typing import Annotated

import typer

from frontrow.app.storm_tokens import make_storm_event, make_storm_token, read_server_settings, wait_until_open
from frontrow.cli.deployment_options import ConfigOption, FolderOption, find_deployment
from frontrow.cli.folder_lock import find_address
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.settings.platform import PlatformSettings

MAX_MINUTES = 24 * 60
KEY_WITHIN_S = 30.0
LOOK_EVERY_S = 0.1


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
        settings = _find_server(config, folder)
        event_id = event or asyncio.run(make_storm_event(settings, seats or 0))
        token = make_storm_token(settings, event_id, minutes * 60)
        if not event:
            _wait_until_open(settings, event_id, token)
        typer.echo(token)
    except FrontrowError as error:
        typer.echo(f"frontrow storm-token: {error.message}", err=True)
        raise typer.Exit(2) from None


def _find_server(config: str | None, folder: str | None) -> PlatformSettings:
    """The settings of the server. One that has just begun with --demo gets the time to make its key."""
    ends_s = time.monotonic() + KEY_WITHIN_S
    while True:  # bounded by KEY_WITHIN_S
        try:
            return read_server_settings(config, folder)
        except ConfigError:
            running = find_address(find_deployment(config, folder).folder)
            if not running or time.monotonic() > ends_s:
                raise
        time.sleep(LOOK_EVERY_S)


def _wait_until_open(settings: PlatformSettings, event_id: str, token: str) -> None:
    """Wait until the server sells the made-up event. Standard error says where it is sold; the token stands alone."""
    url = find_address(settings.folder) if not settings.shared else settings.public_url
    if not url:
        typer.echo(f"{event_id} opens when a server starts in {settings.folder}", err=True)
    elif asyncio.run(wait_until_open(url, token)):
        typer.echo(f"{event_id} is on sale at {url}", err=True)
    else:
        typer.echo(f"{event_id} is not on sale at {url} yet; look at {url}/readyz", err=True)
