"""`frontrow work`: runs the box office's workers in a process of their own until SIGTERM or Ctrl-C."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from frontrow.core.errors import FrontrowError

DEFAULT_LEDGER = "sqlite:///frontrow.db"


def work(
    ledger: Annotated[str, typer.Option("--ledger", envvar="FRONTROW_LEDGER_URL", help="The ledger.")] = DEFAULT_LEDGER,
    bus: Annotated[
        str, typer.Option("--bus", envvar="FRONTROW_BUS_URL", help="memory:, redis://… or kafka://host:9092/topic")
    ] = "memory:",
    mail: Annotated[
        str, typer.Option("--mail", envvar="FRONTROW_MAIL_URL", help="A folder for .eml files, or smtp://host:587")
    ] = "frontrow-outbox",
    keys: Annotated[Path, typer.Option(envvar="FRONTROW_TICKET_KEYS", help="The ring of ticket keys.")] = Path(
        "frontrow-ticket-keys.json"
    ),
    claims: Annotated[
        str, typer.Option("--claims", envvar="FRONTROW_CLAIMS_URL", help="memory: or the servers' redis://…")
    ] = "memory:",
    payments: Annotated[
        str,
        typer.Option("--payments", envvar="FRONTROW_PAYMENTS_URL", help="simulated:FILE, or stripe: (needs its key)"),
    ] = "",
    stripe_key: Annotated[
        str,
        typer.Option(
            envvar="FRONTROW_STRIPE_KEY", help="Stripe's secret key; without provider no payment is worked on."
        ),
    ] = "",
    stripe_api: Annotated[str, typer.Option(envvar="FRONTROW_STRIPE_API", help="Another address than Stripe's.")] = "",
    secret_key: Annotated[
        str, typer.Option(envvar="FRONTROW_SECRET_KEY", help="The servers' secret key: signs the links in messages.")
    ] = "",
    public_url: Annotated[
        str, typer.Option(envvar="FRONTROW_SERVER_PUBLIC_URL", help="How people reach the servers.")
    ] = "http://127.0.0.1:8000",
) -> None:
    """End dead holds, relay facts, serve the waitlist, send messages and webhooks, until told to stop."""
    from frontrow.app.worker import WorkUrls

    urls = WorkUrls(ledger, bus, mail, keys, claims, payments, stripe_key, stripe_api, secret_key, public_url)
    try:
        clean = asyncio.run(_work(urls))
    except FrontrowError as error:
        typer.echo(f"frontrow work: {error.message}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if clean else 1)


async def _work(urls: Any) -> bool:
    from frontrow.app.worker import open_jobs
    from frontrow.boxoffice.jobs.background_jobs import JobRunner

    async with open_jobs(urls) as jobs:
        return await _until_told(JobRunner(jobs))


async def _until_told(workers: Any) -> bool:
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, workers.stop)
    typer.echo(f"working: {', '.join(job.name for job in workers.jobs)}")
    clean: bool = await workers.run()
    for name, count in workers.failures.items():
        typer.echo(f"{name} failed {count} times, last: {workers.last_error[name]}", err=True)
    typer.echo("stopped" if clean else "stopped; some work was cut off and will be done again")
    return clean
