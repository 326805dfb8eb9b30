"""`frontrow limits`: see the algorithms, try a quota, check a configuration."""

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from frontrow.limits import chart
from frontrow.limits.config import load_config
from frontrow.limits.demo import demo
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import Quota

app = typer.Typer(help="The rate limiter: see, try, check.", no_args_is_help=True)
app.command("demo")(demo)
console = Console()
MAX_CALLS = 10_000


def _fail(error: FrontrowError) -> NoReturn:
    Console(stderr=True).print(f"[red]{type(error).__name__}[/red]: ", end="")
    Console(stderr=True).print(error.message, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(2)


@app.command()
def show(
    quota: Annotated[str, typer.Argument(help="how much, per minute is drawn best")] = "100/minute",
    out: Annotated[Path | None, typer.Option(help="also write a chart: .svg, .png or .pdf")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="numbers instead of bars")] = False,
) -> None:
    """Draw what each algorithm accepts of the same bursty traffic."""
    try:
        if as_json:
            rows = {curve.algorithm: curve.accepted for curve in chart.run_all(quota)}
            typer.echo(json.dumps({"bin_s": chart.BIN_S, "accepted": rows}))
        else:
            console.print(chart.build_table(quota))
        if out is not None:
            typer.echo(f"wrote {chart.draw_chart(out, quota)}", err=as_json)
    except FrontrowError as error:
        _fail(error)


@app.command("try")
def try_quota(
    quota: Annotated[str, typer.Argument(help='for example 10/second, "10/s burst 20" or "1/s; 100/h"')],
    algorithm: Annotated[str | None, typer.Option(help="one of the six; default: what fits the quota")] = None,
    burst: Annotated[int | None, typer.Option(help="token and leaky bucket: how many at once")] = None,
    calls: Annotated[int, typer.Option(min=1, max=MAX_CALLS)] = 20,
    every_ms: Annotated[float, typer.Option(min=0.0, help="simulated time between calls")] = 50.0,
    cost: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Make some calls in simulated time and show every decision."""
    try:
        quotas = Quota.parse_all(quota, algorithm=algorithm, burst=burst)
        limiter = Limiter(quotas)
        table = Table(title="; ".join(map(str, quotas)))
        for heading in ("at s", "answer", "rule", "remaining", "reset after s", "retry after s", "delay s"):
            table.add_column(heading, justify="right")
        for index in range(calls):
            at_us = round(index * every_ms * 1000)
            decision = limiter.check("you", cost=cost, now_us=chart.START_US + at_us)
            answer = "[green]allowed[/green]" if decision.allowed else "[red]refused[/red]"
            times = (decision.reset_after_s, decision.retry_after_s, decision.delay_s)
            figures = (decision.rule, str(decision.remaining), *(f"{t:.3f}" for t in times))
            table.add_row(f"{at_us / US_PER_S:.3f}", answer, *figures)
        console.print(table)
    except FrontrowError as error:
        _fail(error)


@app.command("check-config")
def check_config(file: Annotated[Path, typer.Argument(help="a TOML file with [[limits.rules]]")]) -> None:
    """Read a configuration as the middleware would, and show it or say what is wrong."""
    try:
        config = load_config(file)
    except FrontrowError as error:
        _fail(error)
    table = Table(title=f"{file}: {config.settings.store}, headers {config.settings.dialect}")
    for heading in ("rule", "quota", "algorithm", "key", "methods", "paths", "tiers", "store down"):
        table.add_column(heading)
    for rule in config.book.current.rules:
        table.add_row(
            rule.name + (" (shadow)" if rule.shadow else ""),
            str(rule.quota),
            str(rule.quota.algorithm),
            " + ".join(rule.key) or "everybody",
            ", ".join(rule.methods) or "all",
            ", ".join(rule.paths) or "all",
            ", ".join(f"{tier} {quota}" for tier, quota in rule.tiers.items()) or "-",
            rule.on_store_down or config.settings.on_store_down,
        )
    console.print(table)
