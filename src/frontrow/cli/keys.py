"""`frontrow keys rotate`: new signing keys for a platform whose servers share a ledger."""

import asyncio
import time

import typer

from frontrow.app.ledger_tools import opened_ledger
from frontrow.app.wiring import PlatformSettings, read_settings
from frontrow.cli.deployment_options import ConfigOption
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.shared.derived_keys import Secrets
from frontrow.web.platform.platform_keys import rotate_keys

app = typer.Typer(help="The keys that places, passes and tickets are signed with.", no_args_is_help=True)


@app.callback()
def keys() -> None:
    """The keys that places, passes and tickets are signed with."""


@app.command()
def rotate(config: ConfigOption = None) -> None:
    """Put new keys into the ledger; restart every server afterwards, between sales. Old tickets stay valid."""
    try:
        settings = read_settings(config)
        if not settings.shared:
            raise ConfigError("redis.url is not set: an embedded server has its keys in its folder", param="redis.url")
        asyncio.run(_rotate(settings))
    except FrontrowError as error:
        typer.echo(f"frontrow keys: {error.message}", err=True)
        raise typer.Exit(2) from None
    typer.echo("new keys are in the ledger; restart every server now")


async def _rotate(settings: PlatformSettings) -> None:
    async with opened_ledger(settings.ledger_url, auto_migrate=None) as ledger:
        sealing_key = Secrets(settings.secret.key.encode()).key("keys")
        await rotate_keys(ledger, sealing_key, time.time_ns() // 1_000)
