"""`frontrow ledger reconcile`: compare the ledger with the payment provider and put right what can be."""

import asyncio
from typing import Annotated

import msgspec
import typer

from frontrow.app.command_services import reconcile_payments
from frontrow.boxoffice.checkout.reconciliation import WINDOW_S
from frontrow.core.errors import FrontrowError

Url = Annotated[str, typer.Option("--ledger", envvar="FRONTROW_LEDGER_URL", help="The ledger's URL.")]


def reconcile(
    ledger: Url = "sqlite:///frontrow.db",
    payments: Annotated[
        str, typer.Option(envvar="FRONTROW_PAYMENTS_URL", help="simulated:FILE, or stripe: (the default).")
    ] = "stripe:",
    stripe_key: Annotated[str, typer.Option(envvar="FRONTROW_STRIPE_KEY", help="Stripe's secret key.")] = "",
    stripe_api: Annotated[str, typer.Option(envvar="FRONTROW_STRIPE_API", help="Another address than Stripe's.")] = "",
    days: Annotated[float, typer.Option(help="How far back to read the provider's objects.")] = WINDOW_S / 86_400,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
) -> None:
    """Make the provider and the ledger agree; exit 1 when something is left for a person or money differs."""
    window_s = round(days * 86_400)
    work = reconcile_payments(
        ledger, payments or "stripe:", stripe_key=stripe_key, stripe_api=stripe_api, window_s=window_s
    )
    try:
        report = asyncio.run(work)
    except FrontrowError as error:
        typer.echo(f"frontrow ledger: {error.message}", err=True)
        raise typer.Exit(2) from None
    difference = report.difference_minor
    if as_json:
        typer.echo(msgspec.json.encode(report).decode())
    else:
        for line in report.problems:
            typer.echo(line)
        typer.echo(
            f"{report.objects} objects, {report.payments} payments, {report.mended} mended; "
            f"difference {difference or 0} (minor units)"
        )
    if report.problems or difference:
        raise typer.Exit(1)
