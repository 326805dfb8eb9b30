"""`frontrow storm`: real load on your own running server, after it has consented."""

import asyncio
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from frontrow.cli.deployment_options import ConfigOption
from frontrow.core import settings_loader
from frontrow.core.errors import FrontrowError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from frontrow.rehearsal.server_consent import ServerConsent
    from frontrow.rehearsal.storm import StormResult
    from frontrow.rehearsal.storm_plan import StormPlan
    from frontrow.rehearsal.storm_record import StormRecord

HUMAN_CHECK = (
    "the event's waiting room asks for a human check ({check}), so nobody of a storm would get in; set it to none "
    "until the storm is over"
)
ONE_ADDRESS = (
    "{target} counts all fans of this machine as one address, which may send {limit}. Nearly every request would be "
    "refused, so there is no storm. Put this machine into server.trusted_proxies there until the storm is over. "
    "--one-address storms all the same, and shows how the server refuses a shared address"
)
SHOWN = ("page", "join", "now-serving", "claim", "hold", "pay", "tickets")


def storm(
    url: Annotated[str, typer.Argument(help="Your server, like http://127.0.0.1:8000.")],
    token: Annotated[
        str,
        typer.Option(envvar="FRONTROW_STORM_TOKEN", help="The server's consent, made there by `frontrow storm-token`."),
    ] = "",
    config: ConfigOption = None,
    people: Annotated[int | None, typer.Option(help="Fans that come.")] = None,
    arrivals: Annotated[str | None, typer.Option(help="spike, steady or bots.")] = None,
    come_within_s: Annotated[float | None, typer.Option(help="They come within so many seconds.")] = None,
    length_s: Annotated[float, typer.Option("--for-s", help="It ends after so many seconds at the latest.")] = 120.0,
    connections: Annotated[int, typer.Option(help="Connections at once, at most.")] = 500,
    max_rate: Annotated[float, typer.Option(help="Requests per second, at most.")] = 2_000.0,
    processes: Annotated[int | None, typer.Option(help="Processes that send; one per core, up to 4.")] = None,
    one_address: Annotated[
        bool, typer.Option("--one-address", help="Storm also where the server counts all fans as one address.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="The same seed is the same crowd.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots here.")] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write all figures here; - for standard output.")
    ] = None,
) -> None:
    """Put real load on your own running server: whole purchases by a crowd, latencies, a report.

    It asks the server first. Without a token of that server (`frontrow storm-token`, run where the server is set up)
    nothing is sent. Ctrl-C ends it with the report. Exit code 1: a check failed, for example a seat sold twice.
    """
    from rich.console import Console

    from frontrow.rehearsal.server_consent import StormNotAllowed, ask_consent

    console = Console(stderr=as_json is not None and str(as_json) == "-")
    try:
        consent = asyncio.run(ask_consent(url, token))
        sale = _given(people=people, arrivals=arrivals, after_s=come_within_s, seed=seed)
        bounds = _given(length_s=length_s, connections=connections, requests_per_s=max_rate, processes=processes)
        plan = _make_plan(consent, config, sale, bounds)
        if consent.human_check != "none":
            raise StormNotAllowed(HUMAN_CHECK.format(check=consent.human_check))
        if not one_address and not consent.lets_a_crowd_in(plan.requests_per_s):
            raise StormNotAllowed(ONE_ADDRESS.format(target=consent.target.authority, limit=consent.per_address))
    except (FrontrowError, StormNotAllowed) as error:
        _refuse(str(error))
    result = _run(console, plan, consent)
    _show(console, result)
    _write(console, result, html, as_json)
    raise typer.Exit(0 if result.fine else 1)


def _make_plan(
    consent: "ServerConsent", config: str | None, sale_changes: dict[str, Any], bounds: dict[str, Any]
) -> "StormPlan":
    import dataclasses

    from frontrow.rehearsal.sale_plan import SalePlan
    from frontrow.rehearsal.storm_plan import STORM_PLAN, StormPlan

    table = dict(settings_loader.read_tables(config).get("rehearsal", {}))
    names = {field.name for field in dataclasses.fields(SalePlan)} - {"room"}
    table = {name: getattr(STORM_PLAN, name) for name in names if name not in table} | table
    outages = {name: table.pop(name) for name in ("provider_outage", "server_outage")}
    if any(isinstance(value, dict) for value in outages.values()):
        _refuse("a storm causes no outages; leave provider_outage and server_outage out of [rehearsal]")
    sale = SalePlan.from_dict(table).changed(seats=max(1, consent.seats), **sale_changes)
    plan = StormPlan(consent.target, consent.event_id, sale, pays=consent.simulated_payments)
    return plan.changed(**bounds)


def _refuse(why: str) -> NoReturn:
    typer.echo(f"frontrow storm: {why}", err=True)
    raise typer.Exit(2)


def _say_before(console: "Console", consent: "ServerConsent", plan: "StormPlan") -> None:
    lines = [
        f"{consent.target.authority} consents to a storm of {consent.event_id} until {consent.until}.",
        f"{plan.sale.people:,} fans, {consent.free:,} of {consent.seats:,} seats free, at most {plan.length_s:.0f} s.",
    ]
    if not consent.simulated_payments:
        lines.append("The server takes real money: fans hold seats and give them back.")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _run(console: "Console", plan: "StormPlan", consent: "ServerConsent") -> "StormResult":
    from rich.live import Live

    from frontrow.rehearsal.storm import Storm

    running = Storm(plan, consent)
    before = {number: signal.signal(number, lambda *_: running.stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _say_before(console, consent, plan)
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            return running.run(lambda record, now_s: live.update(picture_storm(record, now_s)))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def picture_storm(record: "StormRecord", now_s: float) -> "Table":
    """The storm so far."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from frontrow.rehearsal.storm_record import WAIT

    table = Table(title=f"{now_s:5.1f} s of the storm", box=SIMPLE_HEAD, pad_edge=False, show_header=False)
    done = sum(record.outcomes.values())
    table.add_row("fans", f"{record.arrived:,} came, {record.arrived - done:,} on their way, {done:,} done")
    table.add_row("bought", f"{record.seats_bought:,} seats in {record.bookings:,} bookings")
    rows = record.latencies()
    if WAIT in rows:
        table.add_row("wait", f"median {rows[WAIT]['p50_ms'] / 1000:.1f} s")
    for step in SHOWN:
        if step in rows:
            row = rows[step]
            table.add_row(step, f"{row['count']:,.0f}, p50 {row['p50_ms']:,.0f} ms, p99 {row['p99_ms']:,.0f} ms")
    for what, count in record.refusals.most_common(4):
        table.add_row("refused", f"{count:,} × {what}")
    return table


def _show(console: "Console", result: "StormResult") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table

    from frontrow.rehearsal.storm_report import list_advice, list_latencies, list_results

    summary = Table(title="The storm", show_header=False, title_justify="left")
    for name, value in list_results(result):
        summary.add_row(name, value)
    console.print(summary)
    numbers = ("requests", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "slowest ms")
    steps = Table("step", *(Column(name, justify="right") for name in numbers), box=SIMPLE_HEAD)
    for row in list_latencies(result.record):
        steps.add_row(*row)
    console.print(steps)
    for title, counts in (("ended", result.record.outcomes), ("refused", result.record.refusals)):
        for what, count in counts.most_common(8):
            console.print(f"{title}: {count:,} × {what}", highlight=False)
    for check in result.checks:
        mark = {True: "[green]✓[/green]", False: "[red]NOT SO:[/red]", None: "– not checked:"}[check.holds]
        console.print(f"{mark} {check.what}: {check.detail}", highlight=False, soft_wrap=True)
    for line in list_advice(result):
        console.print(f"• {line}", highlight=False, soft_wrap=True)


def _write(console: "Console", result: "StormResult", html: Path | None, as_json: Path | None) -> None:
    from frontrow.rehearsal.storm_report import write_json, write_storm_report

    if html is not None:
        html.write_text(write_storm_report(result), encoding="utf-8")
        console.print(f"The report: {html}", highlight=False)
    if as_json is not None:
        text = json.dumps(write_json(result), indent=2)
        if str(as_json) == "-":
            print(text)
        else:
            as_json.write_text(text + "\n", encoding="utf-8")


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
