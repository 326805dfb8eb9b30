"""`frontrow limits rules`: look at the rule book that all servers share, change it, go back to an earlier version."""

import getpass
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError, FrontrowError, NotFound
from frontrow.limits.shared_rules import ask_store, put_rules, roll_back_rules
from frontrow.limits.stores.protocol import DEFAULT_PREFIX
from frontrow.limits.stores.rule_versions import MAX_VERSIONS, RuleVersion, RuleVersions, open_rule_versions

app = typer.Typer(help="The rules that all servers share: look, change, go back.", no_args_is_help=True)
TIMEOUT_S = 5.0

StoreOption = Annotated[
    str | None,
    typer.Option(
        envvar="FRONTROW_LIMITS_STORE", help="the store's URL, like redis://127.0.0.1:6379/0 or postgresql://…"
    ),
]
NameOption = Annotated[str, typer.Option(help="the rule book's name, as `rule_book` of the configuration")]
PrefixOption = Annotated[str, typer.Option(help="the limiter's prefix in the store")]
SeenOption = Annotated[
    int | None, typer.Option("--if-version", min=0, help="the version you have seen; nothing is put on top of another")
]
ByOption = Annotated[str, typer.Option(help="who changes it; default: your name on this machine")]
JsonOption = Annotated[bool, typer.Option("--json", help="as JSON")]


@app.command()
def show(
    version: Annotated[int | None, typer.Option(min=1, help="another version than the newest")] = None,
    store: StoreOption = None,
    name: NameOption = "default",
    prefix: PrefixOption = DEFAULT_PREFIX,
    as_json: JsonOption = False,
) -> None:
    """Print the rules as a file that `put` takes."""
    with _versions(store, name, prefix) as versions:
        found = ask_store(lambda: versions.newest() if version is None else versions.get(version))
        if found is None:
            raise NotFound(f"rule book {name!r} has no version{'' if version is None else f' {version}'}")
        typer.echo(json.dumps(found._asdict()) if as_json else f"# {_headline(found)}\n{_without_headline(found.text)}")


@app.command()
def put(
    file: Annotated[Path, typer.Argument(help="a TOML file with [\\[limits.rules]] and nothing else")],
    store: StoreOption = None,
    name: NameOption = "default",
    prefix: PrefixOption = DEFAULT_PREFIX,
    seen: SeenOption = None,
    by: ByOption = "",
    note: Annotated[str, typer.Option(help="why, for the history")] = "",
) -> None:
    """Check the rules of a file and put them in force on all servers."""
    with _versions(store, name, prefix) as versions:
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} cannot be read: {error}") from None
        added = put_rules(versions, _without_headline(text), by=by or _me(), seen=_seen(versions, seen), note=note)
        typer.echo(f"version {added.version} is in force on all servers within a second")


@app.command()
def history(
    store: StoreOption = None,
    name: NameOption = "default",
    prefix: PrefixOption = DEFAULT_PREFIX,
    most: Annotated[int, typer.Option(min=1, max=MAX_VERSIONS, help="how many versions")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show who put which version, when and why. The newest comes first."""
    with _versions(store, name, prefix) as versions:
        found = ask_store(lambda: versions.history(most))
        if as_json:
            typer.echo(json.dumps([each._asdict() for each in found]))
            return
        table = Table(caption=None if found else f"rule book {name!r} has no version yet")
        for heading in ("version", "at (UTC)", "by", "note"):
            table.add_column(heading, justify="right" if heading == "version" else "left")
        for each in found:
            table.add_row(str(each.version), _at(each), escape(each.by), escape(each.note))
        Console().print(table)


@app.command()
def rollback(
    version: Annotated[int, typer.Argument(min=1, help="the version whose rules come back")],
    store: StoreOption = None,
    name: NameOption = "default",
    prefix: PrefixOption = DEFAULT_PREFIX,
    seen: SeenOption = None,
    by: ByOption = "",
) -> None:
    """Put the rules of an earlier version in force again, as a new version."""
    with _versions(store, name, prefix) as versions:
        added = roll_back_rules(versions, version, by=by or _me(), seen=_seen(versions, seen))
        typer.echo(f"version {added.version} has the rules of version {version} and is in force within a second")


@contextmanager
def _versions(store: str | None, name: str, prefix: str) -> Iterator[RuleVersions]:
    """The versions of a book. Errors end the command with one sentence."""
    try:
        if store is None:
            raise ConfigError("name the store: --store redis://127.0.0.1:6379/0, or FRONTROW_LIMITS_STORE")
        versions = open_rule_versions(store, name, prefix=prefix, timeout_s=TIMEOUT_S)
        try:
            yield versions
        finally:
            versions.close()
    except FrontrowError as error:
        _fail(error)


def _fail(error: FrontrowError) -> NoReturn:
    Console(stderr=True).print(f"[red]{type(error).__name__}[/red]: ", end="")
    Console(stderr=True).print(error.message, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(2)


def _seen(versions: RuleVersions, seen: int | None) -> int:
    """The version that the operator has seen. Only for an empty book it need not be said."""
    if seen is not None:
        return seen
    newest = ask_store(versions.newest)
    if newest is None:
        return 0
    message = f"the book is at version {newest.version}; look at it (rules show) and say --if-version {newest.version}"
    raise ConfigError(message, param="if-version")


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without names
        return "unknown"


def _at(version: RuleVersion) -> str:
    return datetime.fromtimestamp(version.at_us / US_PER_S, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _headline(version: RuleVersion) -> str:
    note = f": {version.note}" if version.note else ""
    return f"version {version.version} by {version.by} at {_at(version)} UTC{note}"


def _without_headline(text: str) -> str:
    """A text without the first line that `show` writes, so that what was shown can be put again."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith("# version ") else text
