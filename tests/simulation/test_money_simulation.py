"""The laws of money over random histories (B6-B12, F2, F4, F5, N4): for every fan, captured - refunded = value of the
tickets that still admit; every seat admits at most once; nothing is unfinished after healing.

`FRONTROW_SEEDS=1500` runs more of them (`make soak`); a few run on PostgreSQL.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, render
from frontrow.boxoffice.adapters.ledger.holds import booking_transactions as programs
from frontrow.boxoffice.adapters.ledger.organiser import reseating
from frontrow.boxoffice.adapters.ledger.payments import payment_transactions as paying
from frontrow.boxoffice.adapters.ledger.refunds import return_transactions as returns
from frontrow.boxoffice.refunds import payouts as repaying
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from tests.boxoffice.checkout.office import an_office
from tests.boxoffice.shop import sqlite_url
from tests.simulation.money_world import MoneyWorld

SEEDS = int(os.environ.get("FRONTROW_SEEDS", "16"))
POSTGRES_SEEDS = max(2, SEEDS // 50)
STEPS = 90


async def play(url: str, seed: int) -> None:
    async with an_office(url) as office:
        world = MoneyWorld(office, seed)
        await world.begin()
        for number in range(STEPS):
            await world.step(number)
            await world.check()
        await world.heal()
        await world.check_at_rest()
        assert (await verify(office.ledger.store))[0] == []


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_every_fan_has_paid_for_what_still_admits(seed: int, tmp_path: Path) -> None:
    await play(sqlite_url(tmp_path), seed)


@pytest.mark.parametrize("seed", range(POSTGRES_SEEDS))
async def test_the_same_on_postgres(seed: int, postgres_ledger_url: str) -> None:
    await play(postgres_ledger_url, seed)


# A fix taken out again, and seeds whose histories must then break a law.


def without_returns(patch: pytest.MonkeyPatch) -> None:
    """H1: a cancelled event forgets what was returned to the pool."""

    async def nothing(self: Refunds, event_id: str, page: int) -> AsyncIterator[tuple[int, int]]:
        for none in ():
            yield none

    patch.setattr(Refunds, "_pay_returns", nothing)


def without_gates(patch: pytest.MonkeyPatch) -> None:
    """H3: nobody asks who is inside before a seat goes back."""

    def nobody(booking_ids: object) -> Iterator[Query]:
        yield Query("lock_bookings", [("",)])
        return {}

    for module in (programs, paying, returns, reseating):
        patch.setattr(module, "scanned_seats", nobody)


def without_moves(patch: pytest.MonkeyPatch) -> None:
    """M3: a booking that was moved onto a returned seat does not count as its buyer."""

    def nothing(*about: object) -> Iterator[Query]:
        yield Query("lock_bookings", [("",)])

    patch.setattr(reseating, "resell_moved", nothing)
    known = render(Dialect.SQLITE)
    patch.setitem(known, "resold_returns", known["resold_returns"].replace("b.id <> t.booking_id", "b.fence > t.fence"))  # type: ignore[arg-type]


def without_retries(patch: pytest.MonkeyPatch) -> None:
    """H4: what the provider calls pending or failed is taken for paid."""
    patch.setattr(repaying, "_state_of", lambda given: RefundState.DONE)


CANARIES: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    without_returns: 1,
    without_gates: 0,
    without_moves: 81,
    without_retries: 0,
}


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.__name__)
async def test_the_laws_catch_a_box_office(
    canary: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary(monkeypatch)
    with pytest.raises(AssertionError):
        await play(sqlite_url(tmp_path), CANARIES[canary])
