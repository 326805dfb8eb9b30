"""`frontrow work`: runs the background jobs in a process of their own until SIGTERM or Ctrl-C.

The settings decide which jobs: those of a platform (redis.url in its settings), or those of a ledger alone, which the
options name. Any number of processes may run them over one ledger.
"""

import asyncio
import contextlib
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from frontrow.app.wiring import PlatformSettings, WorkUrls, open_jobs, read_settings
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_deployment
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.core.settings_loader import DEFAULT_FILE
from frontrow.settings.work import health_address
from frontrow.shared.jobs import JobRunner
from frontrow.web.observability.job_health import serve_health
from frontrow.web.observability.logs import set_up_logs

PLATFORM_ONLY = "account mails, report mails, messages to buyers, sign-up mails and presale draws"
EMBEDDED = "redis.url is not set: an embedded server has its jobs inside"


def work(
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    bus: Annotated[
        str | None,
        typer.Option("--bus", envvar="FRONTROW_BUS_URL", help="memory:, redis://… or kafka://host:9092/topic"),
    ] = None,
    mail: Annotated[
        str | None,
        typer.Option("--mail", envvar="FRONTROW_MAIL_URL", help="A folder for .eml files, or smtp://host:587"),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(envvar="FRONTROW_TICKET_KEYS", help="The ring of ticket keys (without a platform).")
    ] = None,
    claims: Annotated[
        str | None,
        typer.Option(envvar="FRONTROW_CLAIMS_URL", help="memory: or the servers' redis://… (without a platform)."),
    ] = None,
    payments: Annotated[
        str | None,
        typer.Option(envvar="FRONTROW_PAYMENTS_URL", help="simulated:FILE, stripe:, adyen: or python:MODULE:FUNCTION."),
    ] = None,
    stripe_key: Annotated[str | None, typer.Option(envvar="FRONTROW_STRIPE_KEY", help="Stripe's secret key.")] = None,
    stripe_api: Annotated[str | None, typer.Option(envvar="FRONTROW_STRIPE_API", help="Instead of Stripe's.")] = None,
    secret_key: Annotated[
        str | None, typer.Option(envvar="FRONTROW_SECRET_KEY", help="The servers' secret key.")
    ] = None,
    public_url: Annotated[
        str | None, typer.Option(envvar="FRONTROW_SERVER_PUBLIC_URL", help="How people reach the servers.")
    ] = None,
    health: Annotated[
        str | None,
        typer.Option(envvar="FRONTROW_WORK_HEALTH", help="Where /healthz, /readyz and /metrics answer: host:port."),
    ] = None,
) -> None:
    """End dead holds, relay facts, send messages and webhooks, finish payments, make offers, until told to stop.

    With a `frontrow.toml` or FRONTROW_REDIS_URL these are the jobs of that platform; else those of the ledger that
    `--ledger` names.
    """
    try:
        settings: PlatformSettings | WorkUrls
        if config is not None or os.environ.get("FRONTROW_REDIS_URL") or Path(DEFAULT_FILE).exists():
            given = {"LEDGER_URL": ledger, "BUS_URL": bus, "MAIL_URL": mail, "STRIPE_KEY": stripe_key}
            given |= {"PAYMENTS_URL": payments, "WORK_HEALTH": health}
            settings = _platform_settings(config, folder, given)
            health = settings.work.health
        elif ledger is not None:
            here = find_deployment(config, folder, ledger)
            defaults = {"bus": here.bus_url, "mail": here.mail_url}
            urls = {"ledger": ledger, "bus": bus, "mail": mail, "claims": claims, "payments": payments}
            urls |= {"stripe_key": stripe_key, "stripe_api": stripe_api}
            urls |= {"secret_key": secret_key, "public_url": public_url}
            chosen = {name: url for name, url in urls.items() if url is not None}
            access = replace(here.bus, url=chosen.get("bus", here.bus.url))
            access.check()
            settings = WorkUrls(
                keys=keys or here.ticket_keys,
                payments_also=here.payments.also,
                bus_access=access.access,
                adyen=here.adyen.access,
                **(defaults | chosen),
            )
        else:
            raise ConfigError(f"{EMBEDDED}. --ledger works for a ledger alone", param="redis.url")
        clean = asyncio.run(run_jobs(settings, health or ""))
    except FrontrowError as error:
        typer.echo(f"frontrow work: {error.message}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if clean else 1)


def _platform_settings(config: str | None, folder: str | None, given: dict[str, str | None]) -> PlatformSettings:
    """The platform's settings, with those of the command line in front."""
    chosen = {f"FRONTROW_{name}": value for name, value in given.items() if value is not None}
    settings = read_settings(config, os.environ | chosen, folder=folder, jobs_inside=True)
    if not settings.shared:
        raise ConfigError(EMBEDDED, param="redis.url")
    return settings


async def run_jobs(settings: PlatformSettings | WorkUrls, health: str = "") -> bool:
    """Run the jobs until a signal, and answer at `health`; whether all of them ended in time."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    set_up_logs()
    async with open_jobs(settings) as jobs, contextlib.AsyncExitStack() as stack:
        workers = JobRunner(jobs)
        if health:
            typer.echo(f"health: {await stack.enter_async_context(serve_health(workers, *health_address(health)))}")
        typer.echo(f"working: {', '.join(job.name for job in jobs)}")
        if isinstance(settings, WorkUrls):
            typer.echo(f"not working on {PLATFORM_ONLY}: they need a platform's settings (redis.url is not set)")
        running = asyncio.create_task(workers.run())
        await stopping.wait()
        workers.stop()
        clean = await running
    for name, count in workers.book.failed().items():
        typer.echo(f"{name} failed {count} times, last: {workers.book.last_errors[name]}", err=True)
    typer.echo("stopped" if clean else "stopped; some work was cut off and will be done again")
    return clean
