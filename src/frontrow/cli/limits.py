"""`frontrow limits`: see the algorithms, try a quota, check a configuration, look after the keys of a running store."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from frontrow.cli import limits_chart as chart
from frontrow.cli.limits_demo import demo
from frontrow.cli.limits_rules import app as rules_app
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError, FrontrowError, Unavailable
from frontrow.core.redis_url import connect_sync, disconnect_sync
from frontrow.limits.config import load_config
from frontrow.limits.http.decorators import rules_of_function
from frontrow.limits.http.key_states import KeyState, KeyStates, keys_of_config, keys_of_limiter, rules_of_config
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import Algorithm, Quota, Rule
from frontrow.limits.rules import to_rules
from frontrow.limits.stores.most_refused_keys import KEPT_S, RefusedKey, top_refused
from frontrow.limits.stores.protocol import DEFAULT_PREFIX

app = typer.Typer(help="The rate limiter: see, try, check; look at a running store.", no_args_is_help=True)
app.command("demo")(demo)
app.add_typer(rules_app, name="rules")
console = Console()
MAX_CALLS = 10_000
STORE_TIMEOUT_S = 5.0

StoreOption = Annotated[
    str | None, typer.Option(envvar="FRONTROW_LIMITS_STORE", help="the store's URL, like redis://127.0.0.1:6379/0")
]
PrefixOption = Annotated[str, typer.Option(help="the limiter's prefix in the store")]
RulesArgument = Annotated[str, typer.Argument(help='a TOML file with [\\[limits.rules]], or a quota like "100/minute"')]
KeyArgument = Annotated[list[str], typer.Argument(help="the key, or its parts like user=42 ip=203.0.113.7")]
NameOption = Annotated[str, typer.Option(help="the rule's name, for a quota that has one")]
FunctionOption = Annotated[str, typer.Option(help="the function that `@limited` decorates, like shop.mail.send_code")]
JsonOption = Annotated[bool, typer.Option("--json", help="as JSON")]


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
        quotas = Quota.parse_all(quota, algorithm=cast(Algorithm | None, algorithm), burst=burst)
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
def check_config(file: Annotated[Path, typer.Argument(help="a TOML file with [\\[limits.rules]]")]) -> None:
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


@app.command()
def state(
    rules: RulesArgument,
    key: KeyArgument,
    store: StoreOption = None,
    prefix: PrefixOption = DEFAULT_PREFIX,
    name: NameOption = "",
    function: FunctionOption = "",
    as_json: JsonOption = False,
) -> None:
    """Show what every rule knows of a key. Charges nothing."""
    with _key_states(rules, key, store, prefix, name, function) as states:
        _print_states(states.read(), as_json)


@app.command()
def reset(
    rules: RulesArgument,
    key: KeyArgument,
    store: StoreOption = None,
    prefix: PrefixOption = DEFAULT_PREFIX,
    name: NameOption = "",
    function: FunctionOption = "",
    as_json: JsonOption = False,
) -> None:
    """Forget what was counted for a key, and show its state afterwards."""
    with _key_states(rules, key, store, prefix, name, function) as states:
        _print_states(states.reset(), as_json)


@app.command()
def watch(
    store: StoreOption = None,
    prefix: PrefixOption = DEFAULT_PREFIX,
    top: Annotated[int, typer.Option(min=1, max=500, help="how many keys")] = 20,
    window: Annotated[int, typer.Option(min=1, max=KEPT_S, help="refusals of the last so many seconds")] = 60,
    every: Annotated[float, typer.Option(min=0.1, help="seconds between two looks")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="look once and end")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the keys that are refused most, live. Needs a limiter with `record_refusals=True`. Ctrl-C ends it."""
    try:
        client = connect_sync(_store_url(store), timeout_s=STORE_TIMEOUT_S)
        try:
            if as_json or once:
                _print_refused(_look(client, prefix, window, top), window, as_json)
                return
            with Live(console=console, auto_refresh=False) as live:
                while True:  # ends with Ctrl-C
                    live.update(_refused_table(_look(client, prefix, window, top), window), refresh=True)
                    time.sleep(every)
        except KeyboardInterrupt:
            return
        finally:
            disconnect_sync(client)
    except FrontrowError as error:
        _fail(error)


@contextmanager
def _key_states(
    rules: str, words: Sequence[str], store: str | None, prefix: str, name: str, function: str
) -> Iterator[KeyStates]:
    """The states of a key in the store. Errors end the command with one sentence."""
    try:
        if rules.endswith(".toml") or Path(rules).is_file():
            config = load_config(rules)
            url = store or config.settings.store
            of_limiter, keys = rules_of_config(config), keys_of_config(config, words)
        else:
            url = _store_url(store)
            of_limiter = rules_of_function(rules, function) if function else list(_named_rules(rules, name))
            keys = keys_of_limiter(of_limiter, words)
        if url.startswith("memory:"):
            raise ConfigError(
                "a store in memory belongs to its process; name a shared store: --store redis://… or postgresql://…"
            )
        options = {"on_store_down": "closed", "deadline_s": STORE_TIMEOUT_S, "prefix": prefix}
        with Limiter(of_limiter, store=url, **options) as limiter:  # type: ignore[arg-type]
            yield KeyStates(limiter, keys)
    except FrontrowError as error:
        _fail(error)


def _named_rules(quota: str, name: str) -> tuple[Rule, ...]:
    return to_rules(quota, name, name + "-{}") if name else to_rules(quota)


def _store_url(store: str | None) -> str:
    if store is None:
        raise ConfigError("name the store: --store redis://127.0.0.1:6379/0, or FRONTROW_LIMITS_STORE")
    return store


def _print_states(states: Sequence[KeyState], as_json: bool) -> None:
    rows = [
        {
            "rule": state.slot.rule.name,
            "tier": state.slot.tier,
            "quota": str(state.slot.quota),
            "allowed": state.decision.allowed,
            "remaining": state.decision.remaining,
            "reset_after_s": state.decision.reset_after_s,
            "retry_after_s": state.decision.retry_after_s,
        }
        for state in states
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table()
    for heading in ("rule", "tier", "quota", "next request", "remaining", "reset after s", "retry after s"):
        table.add_column(
            heading, justify="right" if heading in ("remaining", "reset after s", "retry after s") else "left"
        )
    for row in rows:
        answer = "[green]allowed[/green]" if row["allowed"] else "[red]refused[/red]"
        times = (f"{row['reset_after_s']:.3f}", f"{row['retry_after_s']:.3f}")
        table.add_row(
            str(row["rule"]), str(row["tier"]) or "-", str(row["quota"]), answer, str(row["remaining"]), *times
        )
    console.print(table)


def _look(client: object, prefix: str, window_s: int, top: int) -> list[RefusedKey]:
    from redis.exceptions import RedisError

    try:
        return top_refused(client, prefix, window_s, top)
    except (RedisError, OSError) as error:
        raise Unavailable(f"the store did not answer: {type(error).__name__}: {error}") from error


def _print_refused(rows: Sequence[RefusedKey], window_s: int, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([row._asdict() for row in rows]))
    else:
        console.print(_refused_table(rows, window_s))


def _refused_table(rows: Sequence[RefusedKey], window_s: int) -> Table:
    nobody = "nobody, or no limiter records refusals (record_refusals=True)"
    table = Table(title=f"refused in the last {window_s} s", caption=None if rows else nobody)
    for heading in ("refusals", "rule", "key"):
        table.add_column(heading, justify="right" if heading == "refusals" else "left")
    for row in rows:
        table.add_row(f"{row.refusals:,}", row.rule, escape(row.key))
    return table
