"""`frontrow ledger reconcile`: compare the ledger with the payment provider and put right what can be."""

import asyncio
from typing import Annotated

import msgspec
import typer

from frontrow.app.command_services import reconcile_payments
from frontrow.boxoffice.checkout.reconciliation import WINDOW_S
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_deployment
from frontrow.core.errors import FrontrowError


def reconcile(
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    payments: Annotated[
        str | None,
        typer.Option(
            envvar="FRONTROW_PAYMENTS_URL",
            help="simulated:FILE, stripe:, adyen: or python:MODULE:FUNCTION; without it the server's.",
        ),
    ] = None,
    stripe_key: Annotated[str | None, typer.Option(envvar="FRONTROW_STRIPE_KEY", help="Stripe's secret key.")] = None,
    stripe_api: Annotated[
        str | None, typer.Option(envvar="FRONTROW_STRIPE_API", help="Another address than Stripe's.")
    ] = None,
    days: Annotated[float, typer.Option(help="How far back to read the provider's objects.")] = WINDOW_S / 86_400,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
) -> None:
    """Make the provider and the ledger agree; exit 1 when something is left for a person or money differs."""
    window_s = round(days * 86_400)
    try:
        deployment = find_deployment(config, folder, ledger)
        report = asyncio.run(
            reconcile_payments(
                deployment,
                payments or ("stripe:" if stripe_key else deployment.payments_url),
                stripe_key=stripe_key or deployment.stripe.key,
                stripe_api=stripe_api or deployment.stripe.api,
                window_s=window_s,
            )
        )
    except FrontrowError as error:
        typer.echo(f"frontrow ledger: {error.message}", err=True)
        raise typer.Exit(2) from None
    difference = report.difference_minor
    if as_json:
        typer.echo(msgspec.json.encode(report).decode())
    else:
        for line in report.problems:
            typer.echo(line)
        for name in report.wrong_accounts:
            one = report.accounts[name]
            typer.echo(f"{name}: the ledger says {one.ledger_minor or 0}, the provider {one.provider_minor or 0}")
        typer.echo(
            f"{report.objects} objects, {report.payments} payments, {report.mended} mended; "
            f"difference {difference or 0} (minor units)"
        )
        if report.disputed_minor or report.lost_minor:
            typer.echo(
                f"disputed {report.disputed_minor or 0}, lost to disputes {report.lost_minor or 0} (minor units)"
            )
    if report.problems or difference or report.wrong_accounts:
        raise typer.Exit(1)
