"""The jobs that follow an event's seats, for `services.workers`: make offers, see returns through, keep its status.

Give them as `more` to `box_office_jobs`, on a server that has the sales open and a claim store; name `WAITLIST_GROUP`
among the bus's groups. Without the bus the sweeps alone do the same, some seconds later.
"""

from collections.abc import Sequence
from typing import Any, Final

from frontrow.boxoffice.catalogue.event_status import EventStatusKeeper
from frontrow.boxoffice.jobs.background_jobs import Job
from frontrow.boxoffice.messaging.fact_consumers import FactConsumer
from frontrow.boxoffice.model.facts import Fact
from frontrow.boxoffice.ports.messages import Bus
from frontrow.boxoffice.ports.queries import Query
from frontrow.boxoffice.refunds.ticket_returns import Resale
from frontrow.boxoffice.waitlist.offers import Offering
from frontrow.core.clock import Clock

WAITLIST_GROUP: Final = "waitlist"


def waitlist_jobs(ledger: Any, bus: Bus, clock: Clock, offering: Offering, resale: Resale) -> list[Job]:
    """What goes on by itself for the lines, the pool of returned tickets and the status of events."""
    keeper = EventStatusKeeper(ledger.catalogue, clock)

    async def hear(number: int, fact: Fact) -> Sequence[Query]:
        offering.hear(fact)
        resale.hear(fact)
        keeper.add_fact(fact)
        return ()

    consumer = FactConsumer(WAITLIST_GROUP, bus, ledger.messages, clock, hear)
    return [
        Job(f"consumer {WAITLIST_GROUP}", consumer.run, consumer.stop),
        Job("offering", offering.run),
        Job("resale", resale.run),
        Job("event status", keeper.run),
    ]
