"""`frontrow serve`: the whole platform as one or several processes.

`frontrow.app.wiring` builds it. A wrong setting ends the start with one sentence that names it, and exit code 2. A
store that does not answer is waited for, a minute at most; then the exit code is 1.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from typing import Annotated, Any, NoReturn

import typer

from frontrow.app.wiring import Platform, PlatformSettings, open_platform, read_settings
from frontrow.cli.deployment_options import ConfigOption, FolderOption
from frontrow.cli.folder_lock import lock_folder, write_address
from frontrow.core.errors import ConfigError, FrontrowError, Unavailable
from frontrow.shared import gc_tuning

STOP_JOBS_S = 10.0  # what a worker's jobs and stores may take after its drain


def serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="Where to listen.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="0: any free port.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; more than one needs Redis and PostgreSQL.")] = None,
    folder: FolderOption = None,
    demo: Annotated[
        bool | None, typer.Option("--demo", help="Made-up money, a key made on the spot, an example event.")
    ] = None,
) -> None:
    """Serve the whole platform: waiting room, box office, API."""
    from frontrow.web.observability.logs import set_up_logs
    from frontrow.web.server.platform_server import listen, listen_for_metrics
    from frontrow.web.server.process_supervisor import Workers

    try:
        settings = read_settings(config, host=host, port=port, workers=workers, folder=folder, demo=demo)
        lock = None if settings.shared else lock_folder(settings.deployment.folder)
        sock, metrics = listen(settings.server), listen_for_metrics(settings.server)
    except ConfigError as error:
        _end(error)
    settings = settings.with_port(sock.getsockname()[1])
    if lock is not None:
        write_address(lock, settings.server.address)
    typer.echo(f"frontrow on {settings.server.address}")
    if metrics is not None:
        typer.echo(f"metrics on port {metrics.getsockname()[1]}")
    set_up_logs()
    if demo and not settings.shared and (code := _until_done(_offer_example(settings))):
        raise typer.Exit(code)
    if settings.server.workers == 1:
        raise typer.Exit(run_server(settings, sock, metrics))
    if code := _until_done(_check_platform(settings, sock)):
        raise typer.Exit(code)
    stop_within_s = settings.server.drain_s + STOP_JOBS_S
    arguments = (settings, sock, metrics)

    def close() -> None:
        for one in (sock, metrics):
            if one is not None:
                one.close()

    Workers(settings.server.workers, run_worker, arguments, stop_within_s=stop_within_s, before_stop=close).watch()


def run_worker(settings: PlatformSettings, sock: socket.socket, metrics: socket.socket | None = None) -> None:
    """One of several processes."""
    from frontrow.web.observability.logs import set_up_logs

    set_up_logs()
    code = run_server(settings, sock, metrics)
    if code:
        os._exit(code)


def run_server(settings: PlatformSettings, sock: socket.socket, metrics: socket.socket | None = None) -> int:
    """Serve in this process on uvloop until told to stop; the exit code."""
    return _until_done(_serve(settings, sock, metrics))


def _until_done(serving: Coroutine[Any, Any, None]) -> int:
    import uvloop

    try:
        uvloop.run(serving)
    except FrontrowError as error:
        typer.echo(f"frontrow serve: {error.message}", err=True)
        return 2 if isinstance(error, ConfigError) else 1  # a store that is away may come back
    return 0


async def _check_platform(settings: PlatformSettings, sock: socket.socket) -> None:
    """Open a platform with these settings once, so that an error is reported once; the first start makes its keys."""
    async with _opened(replace(settings, server=replace(settings.server, workers=1)), sock):
        pass


async def _offer_example(settings: PlatformSettings) -> None:
    """Where nothing was ever on sale, have something to try."""
    from frontrow.app.made_up_events import offer_example

    for line in await offer_example(settings.deployment):
        typer.echo(line)


async def _serve(settings: PlatformSettings, sock: socket.socket, metrics: socket.socket | None) -> None:
    from frontrow.web.server.platform_server import serve_platform

    gc_tuning.pause_while_starting()
    async with _opened(settings, sock) as platform, contextlib.AsyncExitStack() as stack:
        if settings.server.demo and not settings.shared:
            from frontrow.app.busy_event import keep_busy

            await stack.enter_async_context(keep_busy(platform))
        await serve_platform(platform, [sock], metrics)


@contextlib.asynccontextmanager
async def _opened(settings: PlatformSettings, sock: socket.socket) -> AsyncIterator[Platform]:
    """The platform. A ledger that does not answer gets as long as the other stores; people get 503 meanwhile."""
    from frontrow.web.server.startup_wait import PAUSE_S, START_WITHIN_S, answer_not_ready, log

    async with contextlib.AsyncExitStack() as stack:
        deadline_s = asyncio.get_running_loop().time() + START_WITHIN_S
        while True:  # bounded by the deadline
            try:
                platform = await stack.enter_async_context(open_platform(settings))
                break
            except Unavailable as error:
                if asyncio.get_running_loop().time() > deadline_s:
                    raise
                log.warning("waiting for the ledger", extra={"problem": error.message})
            async with answer_not_ready([sock]):
                await asyncio.sleep(PAUSE_S)
        yield platform


def _end(error: FrontrowError) -> NoReturn:
    typer.echo(f"frontrow serve: {error.message}", err=True)
    raise typer.Exit(2) from None
