"""`frontrow payments domain`: what the payment provider must know of this shop before wallets work in it."""

import asyncio
import re
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from frontrow.app.command_services import register_wallet_domain
from frontrow.cli.deployment_options import ConfigOption, FolderOption, find_deployment
from frontrow.core.errors import ConfigError, FrontrowError

DOMAIN: Final = re.compile(r"(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*", re.IGNORECASE)
app = typer.Typer(help="Payments: register the shop's domain for Apple Pay and Google Pay.", no_args_is_help=True)


@app.callback()
def payments() -> None:
    """Payments: register the shop's domain for Apple Pay and Google Pay."""


@app.command()
def domain(
    name: Annotated[str | None, typer.Argument(help="The shop's domain; without it that of server.public_url.")] = None,
    config: ConfigOption = None,
    folder: FolderOption = None,
    stripe_key: Annotated[str | None, typer.Option(envvar="FRONTROW_STRIPE_KEY", help="Stripe's secret key.")] = None,
    stripe_api: Annotated[
        str | None, typer.Option(envvar="FRONTROW_STRIPE_API", help="Another address than Stripe's.")
    ] = None,
) -> None:
    """Register the shop's domain with Stripe, which Apple Pay and Google Pay ask for; exit 1 if a wallet is not active.

    Doing it again changes nothing, and has Stripe look at the domain once more.
    """
    try:
        deployment = find_deployment(config, folder)
        host = name or urlsplit(deployment.public_url).hostname or ""
        if not DOMAIN.fullmatch(host):
            raise ConfigError(f"{host or 'an empty name'!r} is no domain; name the shop's, like tickets.example")
        wallets = asyncio.run(
            register_wallet_domain(
                host, stripe_key or deployment.stripe.key, stripe_api=stripe_api or deployment.stripe.api
            )
        )
    except FrontrowError as error:
        typer.echo(f"frontrow payments: {error.message}", err=True)
        raise typer.Exit(2) from None
    for wallet, state in wallets.items():
        typer.echo(f"{host}: {wallet} is {state}")
    if any(state != "active" for state in wallets.values()):
        raise typer.Exit(1)
