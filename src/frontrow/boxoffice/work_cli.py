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
    stripe_key: Annotated[
        str, typer.Option(envvar="FRONTROW_STRIPE_KEY", help="Stripe's secret key; without it no payment is worked on.")
    ] = "",
    stripe_api: Annotated[str, typer.Option(envvar="FRONTROW_STRIPE_API", help="Another address than Stripe's.")] = "",
) -> None:
    """End dead holds, relay facts, send messages and webhooks, until told to stop."""
    try:
        clean = asyncio.run(_work(ledger, bus, mail, keys, _provider(stripe_key, stripe_api)))
    except FrontrowError as error:
        typer.echo(f"frontrow work: {error.message}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if clean else 1)


def _provider(stripe_key: str, stripe_api: str) -> Any:
    if not stripe_key:
        return None
    from frontrow.boxoffice.payments.stripe import StripeProvider  # the extra `payments`

    return StripeProvider(stripe_key, api_base=stripe_api)


async def _work(ledger_url: str, bus_url: str, mail_url: str, keys_path: Path, provider: Any) -> bool:
    from frontrow.boxoffice.bus.opening import open_bus
    from frontrow.boxoffice.channels.opening import MessageSettings, open_channels
    from frontrow.boxoffice.ledger.opening import open_ledger
    from frontrow.boxoffice.outgoing import Outgoing
    from frontrow.boxoffice.services.expiry import LedgerClock
    from frontrow.boxoffice.services.notify import Notifier
    from frontrow.boxoffice.services.tickets import TicketDesk
    from frontrow.boxoffice.services.webhooks import Webhooks
    from frontrow.boxoffice.services.workers import GROUPS, Workers, box_office_jobs, money_jobs
    from frontrow.boxoffice.tickets.codes import Issuer
    from frontrow.boxoffice.tickets.keys import TicketKeys
    from frontrow.core.clock import SystemClock
    from frontrow.core.settings import load

    settings, bus = load(MessageSettings, "messages"), open_bus(bus_url, GROUPS)
    ledger = await open_ledger(ledger_url)
    outgoing = Outgoing()
    try:
        clock = await LedgerClock.measured(ledger, SystemClock())
        keys = TicketKeys.opened(keys_path)
        desk = TicketDesk(ledger, keys)
        channels = open_channels(mail_url, settings, ledger, outgoing, clock)
        notifier = Notifier(ledger, desk, channels, clock)
        more = money_jobs(ledger, provider, clock, Issuer(keys)) if provider is not None else []
        webhooks = Webhooks(ledger, outgoing, clock)
        return await _until_told(Workers(box_office_jobs(ledger, bus, clock, notifier, webhooks, more=more)))
    finally:
        for part in (outgoing, provider, bus, ledger):
            await _closed(part)


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


async def _closed(part: Any) -> None:
    if part is not None:
        await part.aclose()
