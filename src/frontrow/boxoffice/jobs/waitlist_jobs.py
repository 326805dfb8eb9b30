"""The jobs that follow an event's seats: make waitlist offers, finish ticket returns, keep the event's status.

Pass them as `more` to `box_office_jobs` on a server that has the sales open and a claim store, and add `WAITLIST_GROUP`
to the groups of the bus. Without the bus the sweeps do the same, a few seconds later.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.events.status_updates import SEATS_UNCHANGED, EventStatusKeeper
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.model import FACT_KINDS, Fact
from frontrow.boxoffice.facts.ports import Bus, PlannedWrite
from frontrow.boxoffice.jobs.ports import JobLedger
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.waitlist.offers import FREEING, OfferWorker
from frontrow.core.clock import Clock
from frontrow.shared.jobs import Job

WAITLIST_GROUP: Final = "waitlist"


# facts that may free seats, sell them, or change the status of their event
SEAT_FACTS: Final = FACT_KINDS - {one.__name__ for one in SEATS_UNCHANGED} | {one.__name__ for one in FREEING}


def waitlist_jobs(ledger: JobLedger, bus: Bus, clock: Clock, offering: OfferWorker, resale: TicketReturns) -> list[Job]:
    """The jobs of the waitlist, of returned tickets and of the status of events."""
    keeper = EventStatusKeeper(ledger.catalogue, clock)

    async def note_fact(number: int, fact: Fact) -> Sequence[PlannedWrite]:
        offering.note_fact(fact)
        resale.note_fact(fact)
        keeper.add_fact(fact)
        return ()

    consumer = FactConsumer(WAITLIST_GROUP, bus, ledger.messages, clock, note_fact, kinds=SEAT_FACTS, in_turn=True)
    return [
        Job(f"consumer {WAITLIST_GROUP}", consumer.run, consumer.stop),
        Job("offering", offering.run),
        Job("resale", resale.run),
        Job("event status", keeper.run),
    ]
