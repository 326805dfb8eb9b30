"""The races that organisers and gates must win, and ledgers broken on purpose that the same counting must catch."""

import asyncio

import pytest

from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, render
from frontrow.boxoffice.events.event_editing import EventEdit
from frontrow.boxoffice.events.model.event_changes import ChangedMeanwhile
from frontrow.boxoffice.gate.model.scans import Scan
from tests.boxoffice.conftest import opened
from tests.boxoffice.organiser.support import ADA, NOW_US, a_clock, a_purchase, an_office, on_sale

CALLERS = 50
SQL = render(Dialect.SQLITE)
FORGETFUL_GATE = {"admit_tickets": SQL["admit_tickets"].replace("t.scanned_at_us IS NULL OR", "1 = 1 OR")}
LAST_EDIT_WINS = {"swap_events": SQL["swap_events"].replace("AND e.document = r.was_document", "")}


async def let_in(ledger) -> int:
    """How many of fifty gates let one ticket in."""
    event = await on_sale(an_office(ledger, a_clock()))
    booking = await a_purchase(ledger, event, (1,), number=1)
    (ticket,) = await ledger.tickets.tickets_of(booking.id)
    scans = [Scan(f"s{n}", event.id, ticket.id, f"g{n}", NOW_US + CALLERS - n) for n in range(CALLERS)]
    before = await asyncio.gather(*(ledger.organiser.admit(scan) for scan in scans))
    return sum(not one for one in before)


async def edits_made(ledger) -> int:
    """How many of fifty edits of one version are made."""
    office = an_office(ledger, a_clock())
    event = await on_sale(office)
    tag = (await office.get(ADA, event.id)).tag
    edits = [office.change(ADA, event.id, EventEdit(name=f"N{n}"), tag) for n in range(CALLERS)]
    answers = await asyncio.gather(*edits, return_exceptions=True)
    assert all(not isinstance(one, BaseException) or isinstance(one, ChangedMeanwhile) for one in answers)
    return sum(not isinstance(one, BaseException) for one in answers)


@pytest.mark.parametrize("race", [let_in, edits_made])
async def test_n4_one_of_fifty_wins(ledger, race):
    assert await race(ledger) == 1


@pytest.mark.parametrize(("race", "broken"), [(let_in, FORGETFUL_GATE), (edits_made, LAST_EDIT_WINS)])
async def test_a_ledger_that_forgets_the_condition_is_caught(sqlite_ledger_url, race, broken):
    assert all(broken[name] != SQL[name] for name in broken)
    async with opened(sqlite_ledger_url, sql=broken) as ledger:
        assert await race(ledger) > 1
