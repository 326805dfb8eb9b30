"""`frontrow doctor`: is this machine, with these settings and these stores, fit for a sale?"""

import asyncio
from typing import Annotated

import msgspec
import typer

from frontrow.app.doctor import FAIL, Finding, examine
from frontrow.app.payments_doctor import examine_payments
from frontrow.cli.deployment_options import ConfigOption, FolderOption
from frontrow.core.errors import ConfigError
from frontrow.settings.deployment import read_deployment
from frontrow.settings.platform import read_settings

MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}


def doctor(
    config: ConfigOption = None,
    folder: FolderOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    demo: Annotated[bool | None, typer.Option("--demo", help="As `frontrow serve --demo` would run.")] = None,
    payments: Annotated[
        bool, typer.Option("--payments", help="Try out the payment provider with a test key, its webhooks, Apple Pay.")
    ] = False,
    test_key: Annotated[
        str, typer.Option(envvar="FRONTROW_DOCTOR_KEY", help="The provider's test key, in place of the server's.")
    ] = "",
    currency: Annotated[str, typer.Option(help="The currency of the test payments.")] = "EUR",
) -> None:
    """Check configuration, versions, schema, clocks, Redis, disk and secrets. Exit code 1 when something fails."""
    try:
        settings = read_settings(config, folder=folder, demo=demo)
        if payments:
            found = asyncio.run(examine_payments(settings, test_key=test_key, currency=currency))
        else:
            found = asyncio.run(examine(settings))
    except ConfigError as error:
        found = [Finding("configuration", FAIL, error.message, _find_way_out(error, config, folder))]
    else:
        found.insert(0, Finding("configuration", "ok", "the settings can be read and go together"))
    if as_json:
        typer.echo(msgspec.json.encode({"fit": not _failed(found), "findings": found}).decode())
    else:
        for one in found:
            typer.echo(f"{MARKS[one.state]}  {one.check}: {one.says}{'. ' + one.do if one.do else ''}")
    raise typer.Exit(1 if _failed(found) else 0)


def _find_way_out(error: ConfigError, config: str | None, folder: str | None) -> str:
    """A folder with a key of its own belongs to a server that began with --demo."""
    if error.param != "secret.key":
        return ""
    home = read_deployment(config, folder=folder).folder
    return f"{home} is a demo's: for it, `frontrow doctor --demo`" if (home / "secret.key").exists() else ""


def _failed(found: list[Finding]) -> bool:
    return any(one.state == FAIL for one in found)
