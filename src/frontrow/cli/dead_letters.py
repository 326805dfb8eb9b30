"""`frontrow ledger dead-letters list | retry`: facts and deliveries that failed for good, and another try for them."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
import typer

from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.messages.model.messages import DeadLetter
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_ledger
from frontrow.core.errors import FrontrowError

Answer = TypeVar("Answer")
PAGE: Final = 500
MAX_PAGES: Final = 200
app = typer.Typer(help="Dead letters: facts no consumer could handle, deliveries given up.", no_args_is_help=True)


@app.command("list")
def list_command(
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document per line.")] = False,
) -> None:
    """Everything that waits for a person: number, kind, for whom, and why."""
    found = _run(_list, config, folder, ledger)
    for one in found:
        text = msgspec.json.encode({"reason": one.reason} | msgspec.structs.asdict(one)).decode()
        typer.echo(text if as_json else f"{one.number}\t{one.kind}\t{one.queue}\t{one.dedupe}\t{one.reason}")
    if not as_json:
        typer.echo(f"dead letters: {len(found)}")


@app.command()
def retry(
    numbers: Annotated[list[int] | None, typer.Argument(help="Numbers from the list.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Let these be tried again by the workers."""
    if everything == bool(numbers):
        typer.echo("frontrow ledger: name the numbers to try again, or --all", err=True)
        raise typer.Exit(2)
    tried, wrong = _run(lambda url: _retry(url, numbers or ()), config, folder, ledger)
    for line in wrong:
        typer.echo(line, err=True)
    typer.echo(f"{tried} will be tried again")
    if wrong:
        raise typer.Exit(1)


def _run(
    act: Callable[[str], Coroutine[Any, Any, Answer]], config: str | None, folder: str | None, ledger: str | None
) -> Answer:
    try:
        return asyncio.run(act(find_ledger(config, folder, ledger)))
    except FrontrowError as error:
        typer.echo(f"frontrow ledger: {error.message}", err=True)
        raise typer.Exit(2) from None


async def _list(url: str) -> list[DeadLetter]:
    async with opened_ledger(url) as ledger:
        found: list[DeadLetter] = []
        for _ in range(MAX_PAGES):
            page = await ledger.dead_letters.page(found[-1].number if found else 0, PAGE)
            found += page
            if len(page) < PAGE:
                break
        return found


async def _retry(url: str, numbers: Sequence[int]) -> tuple[int, list[str]]:
    numbers = numbers or [one.number for one in await _list(url)]
    wrong: list[str] = []
    async with opened_ledger(url) as ledger:
        for number in numbers:
            try:
                await ledger.dead_letters.retry(number, time.time_ns() // 1000)
            except FrontrowError as error:
                wrong.append(error.message)
    return len(numbers) - len(wrong), wrong
