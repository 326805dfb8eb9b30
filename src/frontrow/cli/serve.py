"""`frontrow serve` and `frontrow work`: the platform as one or several processes, and its jobs as one of their own.

Both are put together by `frontrow.app.wiring` from the same settings. What is wrong with them ends the start with one
sentence naming the setting and exit code 2.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from frontrow.app.wiring import PlatformSettings, open_platform, read_settings
from frontrow.core.errors import ConfigError, FrontrowError

STOP_JOBS_S = 10.0  # what a worker's jobs and stores may take after its drain
ConfigOption = Annotated[str | None, typer.Option("--config", envvar="FRONTROW_CONFIG", help="A frontrow.toml.")]


def serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="Where to listen.")] = None,
    port: Annotated[int | None, typer.Option(help="0: any free port.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; more than one needs Redis and PostgreSQL.")] = None,
    folder: Annotated[str | None, typer.Option(help="Keys, and in the embedded mode everything else.")] = None,
    demo: Annotated[bool | None, typer.Option("--demo", help="Made-up money, a key made on the spot.")] = None,
) -> None:
    """Serve the whole platform: waiting room, box office, API."""
    from frontrow.web.observability.logs import set_up_logs
    from frontrow.web.server.platform_server import listen
    from frontrow.web.server.process_supervisor import Workers

    try:
        settings = read_settings(config, host=host, port=port, workers=workers, folder=folder, demo=demo)
        sock = listen(settings.server)
    except ConfigError as error:
        _end(error)
    settings = settings.with_port(sock.getsockname()[1])
    typer.echo(f"frontrow on {settings.server.address}")
    set_up_logs()
    if settings.server.workers == 1:
        raise typer.Exit(run_server(settings, sock))
    if code := _until_done(_look(settings)):  # once, so that what is wrong is said once
        raise typer.Exit(code)
    stop_within_s = settings.server.drain_s + STOP_JOBS_S
    count, told = settings.server.workers, (settings, sock)
    Workers(count, run_worker, told, stop_within_s=stop_within_s, before_stop=sock.close).watch()


def run_worker(settings: PlatformSettings, sock: socket.socket) -> None:
    """One of several processes."""
    from frontrow.web.observability.logs import set_up_logs

    set_up_logs()
    code = run_server(settings, sock)
    if code:
        os._exit(code)


def run_server(settings: PlatformSettings, sock: socket.socket) -> int:
    """Serve in this process on uvloop until told to stop; the exit code."""
    return _until_done(_serve(settings, sock))


def _until_done(serving: Coroutine[Any, Any, None]) -> int:
    import uvloop

    try:
        uvloop.run(serving)
    except FrontrowError as error:
        typer.echo(f"frontrow serve: {error.message}", err=True)
        return 2 if isinstance(error, ConfigError) else 1  # a store that is away may come back
    return 0


async def _look(settings: PlatformSettings) -> None:
    """Whether a platform can be opened with these settings; makes its keys on the first start."""
    async with open_platform(replace(settings, server=replace(settings.server, workers=1))):
        pass


async def _serve(settings: PlatformSettings, sock: socket.socket) -> None:
    from frontrow.web.server.platform_server import serve_platform

    async with open_platform(settings) as platform:
        await serve_platform(platform, [sock])


def work(
    config: ConfigOption = None,
    ledger: Annotated[str | None, typer.Option("--ledger", envvar="FRONTROW_LEDGER_URL", help="The ledger.")] = None,
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
        typer.Option(envvar="FRONTROW_PAYMENTS_URL", help="simulated:FILE or stripe: (without a platform)."),
    ] = None,
    stripe_key: Annotated[str | None, typer.Option(envvar="FRONTROW_STRIPE_KEY", help="Stripe's secret key.")] = None,
    stripe_api: Annotated[str | None, typer.Option(envvar="FRONTROW_STRIPE_API", help="Instead of Stripe's.")] = None,
    secret_key: Annotated[
        str | None, typer.Option(envvar="FRONTROW_SECRET_KEY", help="The servers' secret key.")
    ] = None,
    public_url: Annotated[
        str | None, typer.Option(envvar="FRONTROW_SERVER_PUBLIC_URL", help="How people reach the servers.")
    ] = None,
) -> None:
    """End dead holds, relay facts, send messages and webhooks, finish payments, make offers, until told to stop.

    With a `frontrow.toml` or FRONTROW_REDIS_URL these are the jobs of that platform; else those of a ledger alone.
    """
    if config is None and not os.environ.get("FRONTROW_REDIS_URL") and not Path("frontrow.toml").exists():
        from frontrow.cli import work as work_cli

        given = {"ledger": ledger, "bus": bus, "mail": mail, "keys": keys, "claims": claims, "payments": payments}
        stripe = {"stripe_key": stripe_key, "stripe_api": stripe_api}
        given |= {"secret_key": secret_key, "public_url": public_url}
        chosen = {name: value for name, value in (given | stripe).items() if value is not None}
        work_cli.work(**chosen)  # type: ignore[arg-type]
        return
    for name, value in (("LEDGER_URL", ledger), ("BUS_URL", bus), ("MAIL_URL", mail), ("STRIPE_KEY", stripe_key)):
        if value is not None:
            os.environ[f"FRONTROW_{name}"] = value
    try:
        settings = read_settings(config, jobs_inside=True)
        if not settings.shared:
            raise ConfigError("redis.url is not set: an embedded server has its jobs inside", param="redis.url")
        clean = asyncio.run(_work(settings))
    except FrontrowError as error:
        typer.echo(f"frontrow work: {error.message}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if clean else 1)


async def _work(settings: PlatformSettings) -> bool:
    from frontrow.web.app import run_platform

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stopping.set)
    async with open_platform(settings) as platform, run_platform(platform, rooms=False):
        typer.echo(f"working: {', '.join(job.name for job in platform.jobs)}")
        await stopping.wait()
    typer.echo("stopped")
    return True


def _end(error: FrontrowError) -> NoReturn:
    typer.echo(f"frontrow serve: {error.message}", err=True)
    raise typer.Exit(2) from None
