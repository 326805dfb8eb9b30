"""`frontrow ledger migrate | verify | status | reconcile | dead-letters | allow-address | backup | restore | archive |
partition`: schema, proof, money, messages, copies, size."""

import asyncio
import json
from typing import Annotated

import typer

from frontrow.app.ledger_tools import list_proofs, migrate_ledger, read_ledger_status, verify_ledger
from frontrow.cli.archives import archive
from frontrow.cli.backups import backup, restore
from frontrow.cli.blocked_addresses import allow_address
from frontrow.cli.dead_letters import app as dead_letters_app
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_direct_ledger, find_ledger
from frontrow.cli.partitions import partition
from frontrow.cli.reconcile import reconcile
from frontrow.core.errors import FrontrowError, InvalidInput

app = typer.Typer(help="The ledger: schema, proof, figures, money.", no_args_is_help=True)
app.command()(reconcile)
app.add_typer(dead_letters_app, name="dead-letters")
app.command()(backup)
app.command()(restore)
app.command()(archive)
app.command()(allow_address)
app.command()(partition)
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


def _fail(error: FrontrowError) -> typer.Exit:
    typer.echo(f"frontrow ledger: {error.message}", err=True)
    return typer.Exit(2)


@app.command()
def migrate(config: ConfigOption = None, folder: FolderOption = None, ledger: LedgerOption = None) -> None:
    """Bring the schema to the newest version; doing it again changes nothing."""
    try:
        before, after = migrate_ledger(find_direct_ledger(config, folder, ledger))
    except FrontrowError as error:
        raise _fail(error) from None
    except Exception as error:  # the driver's own words; no stack for a wrong host name
        typer.echo(f"frontrow ledger: cannot migrate: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"schema {after}" if before == after else f"schema {before or 'none'} -> {after}")


@app.command()
def verify(
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    head: Annotated[
        list[str] | None, typer.Option(help="A head kept outside, chain:seq:hash; may be given often.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that no seat is sold twice, that nothing is out of step and that the audit chains are unbroken.

    Says what that proves, and what it cannot: for example that nothing was lost when a backup was restored.
    """
    try:
        kept = dict(map(_head, head or []))
        wrong, read = asyncio.run(verify_ledger(find_ledger(config, folder, ledger), kept))
    except FrontrowError as error:
        raise _fail(error) from None
    proved, not_proved = ([], []) if wrong else list_proofs(kept)
    if as_json:
        about = {"problems": wrong, "audit_entries": read, "proved": proved, "not_proved": not_proved}
        typer.echo(json.dumps(about))
    else:
        for line in wrong:
            typer.echo(line)
        typer.echo(
            f"{len(wrong)} problems; {read} audit entries read" if wrong else f"whole; {read} audit entries read"
        )
        for line in (*(f"proved: {one}" for one in proved), *(f"not proved: {one}" for one in not_proved)):
            typer.echo(line)
    if wrong:
        raise typer.Exit(1)


@app.command()
def status(
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    as_json: AsJson = False,
) -> None:
    """The schema's version, how much is in the ledger, and the heads of the audit chains (write them down)."""
    try:
        figures = asyncio.run(read_ledger_status(find_ledger(config, folder, ledger)))
    except FrontrowError as error:
        raise _fail(error) from None
    if as_json:
        typer.echo(json.dumps(figures))
        return
    typer.echo(f"schema {figures['schema']}")
    for name, count in figures["counts"].items():
        typer.echo(f"{name}: {count}")
    for line in figures["heads"]:
        typer.echo(f"head {line}")


def _head(text: str) -> tuple[str, tuple[int, str]]:
    try:
        chain, seq, last_hash = text.split(":")
        return chain, (int(seq), last_hash)
    except ValueError:
        raise InvalidInput(f"{text[:80]!r} is not a head; one looks like aud_01…:17:5f3c…", param="head") from None
