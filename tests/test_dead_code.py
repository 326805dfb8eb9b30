"""The finder of unused methods tells a use of one class from a use of another (canaries of `make check`)."""

from pathlib import Path

import pytest

from tests.method_uses import Uses

LEDGER = """
import asyncio
from typing import Protocol


class Ledger(Protocol):
    async def cancel(self, booking_id: str) -> None: ...
    async def booking(self, booking_id: str) -> str: ...


class SqlLedger:
    async def cancel(self, booking_id: str) -> None: ...
    async def booking(self, booking_id: str) -> str: ...
"""


def unused(folder: Path, user: str) -> set[str]:
    source = folder / "src" / "frontrow"
    source.mkdir(parents=True)
    (source / "ledger.py").write_text(LEDGER)
    (source / "user.py").write_text(f"import asyncio\nfrom frontrow.ledger import Ledger, SqlLedger\n\n{user}")
    found = Uses(folder / "src", sorted(source.glob("*.py"))).unused_methods()
    return {f"{owner}.{method}" for _, _, owner, method in found if owner.endswith("Ledger")}


@pytest.mark.parametrize(
    "user",
    [
        "def stop(ledger: Ledger, task: asyncio.Task[None]) -> None:\n    ledger.booking(''); task.cancel()",
        "def stop(ledger: Ledger) -> None:\n    ledger.booking('')\n    a = asyncio.create_task(f())\n    a.cancel()",
        "def stop(ledgers: dict[str, Ledger], tasks: list['asyncio.Task[None]']) -> None:\n"
        "    for one in ledgers.values():\n        one.booking('')\n    for task in tasks:\n        task.cancel()",
        "class Job:\n    def __init__(self, ledger: Ledger) -> None:\n        self._ledger = ledger\n"
        "        self._task: asyncio.Task[None] | None = None\n"
        "    def stop(self) -> None:\n        self._ledger.booking('')\n        self._task.cancel()",
    ],
    ids=["parameter", "assigned", "in containers", "field"],
)
def test_the_cancel_of_a_task_is_no_use_of_the_ledgers(tmp_path: Path, user: str) -> None:
    assert unused(tmp_path, user) == {"Ledger.cancel", "SqlLedger.cancel"}


@pytest.mark.parametrize(
    "user",
    [
        "def end(ledger: Ledger) -> None:\n    ledger.cancel(''); ledger.booking('')",
        "def end(ledger: SqlLedger | None) -> None:\n    ledger.cancel(''); ledger.booking('')",
        "def made() -> 'SqlLedger': ...\ndef end() -> None:\n    one = made()\n    one.cancel(''); one.booking('')",
        "def end(something) -> None:\n    something.cancel(''); something.booking('')",
        "class Own(SqlLedger):\n    def end(self) -> None:\n        self.cancel(''); super().booking('')",
        "def end(ledgers: list[Ledger]) -> None:\n    [(one.cancel(''), one.booking('')) for one in ledgers]",
    ],
    ids=["protocol", "class", "returned", "unknown", "subclass", "comprehension"],
)
def test_a_use_through_a_protocol_a_class_or_something_unknown_counts(tmp_path: Path, user: str) -> None:
    assert unused(tmp_path, user) == set()
