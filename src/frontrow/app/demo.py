"""`frontrow demo`: a whole sale on this machine. A server (embedded, nothing to install), a 50,000-seat event on sale,
and a crowd of simulated fans who queue, hold, pay and sometimes change their mind, while the API and pages are live.
The shop lets a part of the crowd in at a time; the others wait in the waiting room.

`--for 60s` ends by itself with a summary and exit code 0, or 1 when a fan got an answer nobody should get or the ledger
disagrees with itself.
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frontrow.core.errors import FrontrowError

if TYPE_CHECKING:
    from rich.table import Table

    from frontrow.rehearsal.demo_crowd import CrowdStats

WAIT = "wait"  # what the crowd counts waits under
EVENT_ID = "evt_demo"
START_WITHIN_S = 90.0
LOOK_EVERY_S = 0.5
BANNER_ENDS = "mails"  # the last line that the server says before it begins
SHARE_INSIDE = 4  # one of so many fans is in the shop at a time, the others wait
STEPS = ("join", "status", "claim", "hold", "pay")


def demo(
    run_for: Annotated[str, typer.Option("--for", help="For example 60s or 2m; without it until Ctrl-C.")] = "",
    seats: Annotated[int, typer.Option(help="Seats on sale.")] = 50_000,
    people: Annotated[int, typer.Option(help="Fans at a time, most of them waiting.")] = 400,
    port: Annotated[int, typer.Option(help="0: any free port.")] = 0,
    folder: Annotated[str, typer.Option(help="Keep everything here; without it a folder that is removed.")] = "",
) -> None:
    """Sell out a stadium on this machine: server, waiting room, crowd, payments; live in the terminal."""
    seconds = _seconds(run_for)
    with tempfile.TemporaryDirectory(prefix="frontrow-demo-") as temporary:
        home = Path(folder or temporary).resolve()
        home.mkdir(parents=True, exist_ok=True)
        try:
            code = _demo(home, seats, people, port, seconds)
        except FrontrowError as error:
            raise typer.BadParameter(error.message) from None
        raise typer.Exit(code)


def _seconds(text: str) -> float | None:
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,6})(s|m|)", text)
    if not found:
        raise typer.BadParameter("--for is like 60s or 2m")
    return float(int(found[1]) * (60 if found[2] == "m" else 1))


def _demo(home: Path, seats: int, people: int, port: int, seconds: float | None) -> int:
    from rich.console import Console

    console = Console()
    console.print(f"A stadium of {seats:,} seats goes on sale …", highlight=False)
    asyncio.run(put_on_sale(home, seats))
    server = _start(home, port, people)
    try:
        url, banner = _read_banner(server)
        _wait_until_open(url, server)
        for line in (f"live at {url}", *banner):
            console.print(line, highlight=False, soft_wrap=True)
        tally, took_s, interrupted = asyncio.run(_crowd(console, url, people, seconds, server))
        stays = seconds is None and not interrupted and server.poll() is None
        if stays:
            _summary(console, tally, took_s, seats, asyncio.run(_read_ledger(home)))
            console.print("Nothing is left to buy. The pages above stay open until Ctrl-C.", highlight=False)
            with_patience(server)
    finally:
        code = _stop(server)
    totals = asyncio.run(_read_ledger(home))
    if not stays:
        _summary(console, tally, took_s, seats, totals)
    if tally.odd:
        console.print("odd answers: " + "; ".join(tally.odd[-3:]), highlight=False, markup=False)
    if code:
        console.print(f"the server ended with code {code}; --folder keeps its log", highlight=False)
    return 1 if tally.odd or totals.wrong or code else 0


async def put_on_sale(home: Path, seats: int) -> None:
    """Put a stadium on sale in the demo's ledger."""
    from frontrow.app import demo_season, made_up_events
    from frontrow.settings.deployment import Deployment
    from frontrow.settings.server import ServerSettings

    deployment = Deployment(ServerSettings(folder=str(home)))
    await made_up_events.put_on_sale(deployment.ledger_url, EVENT_ID, demo_season.NAME, seats)


def _start(home: Path, port: int, people: int) -> "subprocess.Popen[str]":
    """The server in a process of its own; the crowd pretends to come through a proxy, each fan with an address."""
    inside = str(max(1, people // SHARE_INSIDE))
    env = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    env |= {
        "FRONTROW_SERVER_TRUSTED_PROXIES": "127.0.0.1",
        "FRONTROW_ROOM_CAPACITY": inside,
        "FRONTROW_ROOM_HUMAN": "none",  # the crowd are programs
        "FRONTROW_ROOM_WINDOW_SIZE": inside,
        "FRONTROW_ROOM_INTERVAL_S": "0.25",
        "FRONTROW_ROOM_LEAVE_S": "1",  # these fans do not come back: who is next comes in soon
    }
    words = ["serve", "--demo", "--folder", str(home), "--port", str(port)]
    command = [sys.executable, "-m", "frontrow.cli.with_parent", *words]
    with (home / "server.log").open("ab") as errors:
        return subprocess.Popen(  # noqa: S603
            command,
            env=env,
            cwd=home,
            stdin=subprocess.PIPE,  # closed by the system when the demo is killed: the server notices and ends
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # a Ctrl-C in the terminal is for the demo, which then stops the server
        )


def _read_banner(server: "subprocess.Popen[str]") -> tuple[str, list[str]]:
    """The server's address, and its lines about what to open: with the only invitation that is valid."""
    assert server.stdout is not None
    first = server.stdout.readline()
    if "http://" not in first:
        raise typer.BadParameter("the server did not start; try again with --folder to see its log")
    lines = []
    for line in server.stdout:
        lines.append(line.rstrip("\n"))
        if line.strip().startswith(BANNER_ENDS):
            return first.split()[-1], lines
    raise typer.BadParameter("the server ended while it started; try again with --folder to see its log")


def _wait_until_open(url: str, server: "subprocess.Popen[str]") -> None:
    deadline_s = time.monotonic() + START_WITHIN_S
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # a proxy of the office is not for this
    while time.monotonic() < deadline_s and server.poll() is None:
        try:
            with ask(f"{url}/v1/events/{EVENT_ID}/seats.bin", timeout=5):
                return
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it holds the connection
            time.sleep(0.1)
    raise typer.BadParameter("the server did not open the sale in time")


async def _crowd(
    console: Any, url: str, people: int, seconds: float | None, server: "subprocess.Popen[str]"
) -> "tuple[CrowdStats, float, bool]":
    """Let the crowd in and show how it goes, while the server lives.

    Returns what it saw, how long it took, and whether Ctrl-C ended it.
    """
    from rich.live import Live

    from frontrow.rehearsal.demo_crowd import Crowd
    from frontrow.rehearsal.http_client import FanConnection, Target

    crowd = Crowd(url, EVENT_ID, people)
    look = FanConnection(Target.from_url(url), "192.0.2.1")
    began_s = time.monotonic()
    running = asyncio.create_task(crowd.run())
    loop = asyncio.get_running_loop()
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        crowd.stop()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            while not running.done():
                await asyncio.wait((running,), timeout=LOOK_EVERY_S)
                took_s = time.monotonic() - began_s
                with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
                    shown = (await look.send("GET", f"/v1/events/{EVENT_ID}")).json()
                    free = int(shown.get("free", 0))
                    live.update(picture(crowd.tally, took_s, int(shown.get("seats", 0)), free))
                if server.poll() is not None or (seconds is not None and took_s >= seconds):
                    crowd.stop()
        await running
    finally:
        await look.aclose()
        loop.remove_signal_handler(signal.SIGINT)
    return crowd.tally, time.monotonic() - began_s, interrupted


def picture(tally: "CrowdStats", took_s: float, seats: int, free: int) -> "Table":
    """The sale so far."""
    from rich.box import SIMPLE_HEAD
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    counts = tally.counts
    table = Table(title=f"{took_s:5.1f} s of the sale", box=SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_row("sold or held", ProgressBar(total=max(seats, 1), completed=seats - free, width=30))
    table.add_row("seats", f"{seats - free:,} of {seats:,}")
    fans = f"{counts['joined']:,} joined, {counts['admitted']:,} admitted, {counts['bookings']:,} bought"
    table.add_row("fans", fans)
    waited = f"median wait {tally.percentile(WAIT, 0.5) / 1000:.1f} s"
    now = f"{counts['waiting']:,} waiting, {counts['inside']:,} in the shop, "
    table.add_row("waiting room", now + waited if counts["waiting"] or counts["inside"] else waited)
    table.add_row("money", f"{counts['declined']:,} cards declined, {counts['given back']:,} seats given back")
    passed_s = max(took_s, 0.1)
    table.add_row("pace", f"{counts['sold'] / passed_s:,.0f} seats/s, {counts['requests'] / passed_s:,.0f} requests/s")
    return table


def with_patience(server: "subprocess.Popen[str]") -> None:
    """Until Ctrl-C or until the server ends."""
    try:
        server.wait()
    except KeyboardInterrupt:
        return


def _stop(server: "subprocess.Popen[str]") -> int:
    with server:  # closes the pipes
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
        try:
            return server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            return server.wait(10)


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """What the ledger says at the end. `wrong` names the checks of itself that failed: none."""

    bookings: int
    sold: int
    taken: int  # sold or held
    wrong: tuple[str, ...]


async def _read_ledger(home: Path) -> LedgerTotals:
    from frontrow.boxoffice.adapters.ledger.from_url import open_ledger

    ledger = await open_ledger(f"sqlite:///{home / 'frontrow.db'}")
    try:
        wrong = await ledger.operations.failed_checks()
        by_state = await ledger.figures.bookings_by_state(EVENT_ID)
        confirmed = [(bookings, seats) for state, _, bookings, seats, _ in by_state if state == "confirmed"]
        counts = await ledger.operations.row_counts()
        bookings, sold = (sum(column) for column in zip(*confirmed, strict=True)) if confirmed else (0, 0)
        return LedgerTotals(bookings, sold, counts["seats active"], tuple(wrong))
    finally:
        await ledger.aclose()


def _summary(console: Any, tally: "CrowdStats", took_s: float, seats: int, totals: LedgerTotals) -> None:
    counts = tally.counts
    console.print(picture(tally, took_s, seats, seats - totals.taken))
    median_s, most_s = (tally.percentile(WAIT, share) / 1000 for share in (0.5, 0.99))
    waited, joined = len(tally.took_ms.get(WAIT, ())), counts["joined"]
    console.print(
        f"{waited:,} of {joined:,} fans waited and were let in: half of them within {median_s:.1f} s, 99 of 100 within "
        f"{most_s:.1f} s; {joined - counts['admitted']:,} waited at the end",
        highlight=False,
        soft_wrap=True,
    )
    steps = ", ".join(f"{s} {tally.percentile(s, 0.5):.0f}/{tally.percentile(s, 0.99):.0f}" for s in STEPS)
    console.print(f"milliseconds per step, p50/p99: {steps}", highlight=False)
    console.print(
        f"{totals.bookings:,} bookings, {totals.sold:,} of {seats:,} seats sold "
        f"({counts['given back']:,} were given back on the way), {counts['odd']:,} odd answers; "
        f"ledger: {'nothing sold twice' if not totals.wrong else ', '.join(totals.wrong)}",
        highlight=False,
        soft_wrap=True,
    )
