"""`frontrow ledger aside list | retry`: facts and deliveries that were put aside, and another try for them."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
import typer

from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.model.messages import Aside
from frontrow.core.errors import FrontrowError

Answer = TypeVar("Answer")
PAGE: Final = 500
MAX_PAGES: Final = 200
app = typer.Typer(help="What was put aside: facts no consumer could handle, deliveries given up.", no_args_is_help=True)
Url = Annotated[str, typer.Option("--ledger", envvar="FRONTROW_LEDGER_URL", help="The ledger's URL.")]


@app.command("list")
def list_command(
    ledger: Url = "sqlite:///frontrow.db",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document per line.")] = False,
) -> None:
    """Everything that waits for a person: number, kind, for whom, and why."""
    found = _run(_list(ledger))
    for one in found:
        text = msgspec.json.encode({"reason": one.reason} | msgspec.structs.asdict(one)).decode()
        typer.echo(text if as_json else f"{one.number}\t{one.kind}\t{one.lane}\t{one.dedupe}\t{one.reason}")
    if not as_json:
        typer.echo(f"{len(found)} put aside")


@app.command()
def retry(
    numbers: Annotated[list[int] | None, typer.Argument(help="Numbers from the list.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that is put aside.")] = False,
    ledger: Url = "sqlite:///frontrow.db",
) -> None:
    """Let these be tried again by the workers."""
    if everything == bool(numbers):
        typer.echo("frontrow ledger: name the numbers to try again, or --all", err=True)
        raise typer.Exit(2)
    tried, wrong = _run(_retry(ledger, numbers or ()))
    for line in wrong:
        typer.echo(line, err=True)
    typer.echo(f"{tried} will be tried again")
    if wrong:
        raise typer.Exit(1)


def _run(work: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        return asyncio.run(work)
    except FrontrowError as error:
        typer.echo(f"frontrow ledger: {error.message}", err=True)
        raise typer.Exit(2) from None


async def _list(url: str) -> list[Aside]:
    async with opened_ledger(url) as ledger:
        found: list[Aside] = []
        for _ in range(MAX_PAGES):
            page = await ledger.dead_letters.asides(found[-1].number if found else 0, PAGE)
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
                await ledger.dead_letters.retry_aside(number, time.time_ns() // 1000)
            except FrontrowError as error:
                wrong.append(error.message)
    return len(numbers) - len(wrong), wrong
