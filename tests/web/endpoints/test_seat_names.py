"""The ticket renderer reads a plan once for all callers: a stadium's takes a third of a second (bench-api)."""

import asyncio
from types import SimpleNamespace
from typing import Any

from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from tests.boxoffice.plan_samples import small_plan
from tests.web.api.support import an_event


async def test_fifty_at_once_read_the_plan_once():
    body = plan_bytes(small_plan())
    event = an_event(0, digest(body))

    class Catalogue:
        reads = 0

        async def plan_document(self, plan_hash: str) -> str:
            Catalogue.reads += 1
            await asyncio.sleep(0)
            return body.decode()

    ledger: Any = SimpleNamespace(catalogue=Catalogue(), pictures=None)
    keys: Any = None
    renderer = TicketRenderer(ledger, keys)
    found = await asyncio.gather(*(renderer.seat_names(event) for _ in range(50)))
    assert Catalogue.reads == 1
    assert set(found) == {small_plan().seat_ids}
