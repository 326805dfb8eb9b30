"""Reads the ledger's figures at intervals and writes this worker's numbers for the others.

Reading the figures takes a few milliseconds for 50,000 bookings. A slower read happens less often, so that it never
takes more than a fiftieth of the time.
"""

import asyncio
import time
from typing import Final

from frontrow.core.errors import FrontrowError
from frontrow.web.observability.telemetry import READ_WITHIN_S, RECENT_LOOKS
from frontrow.web.platform.metrics import families
from frontrow.web.platform.platform import Platform

EVERY_S: Final = 2.0
IDLE_EVERY_S: Final = 10.0  # after a minute without a request
SHARE: Final = 50
LONGEST_PAUSE_S: Final = 20.0  # the longest delay of the next read, even if the whole process was stopped


async def measure(platform: Platform) -> None:
    """Until cancelled: read the figures, check the claim store, and write the numbers for the other workers."""
    telemetry = platform.server.telemetry
    arrived, idle_looks = telemetry.gate.arrived, 0
    while True:
        began_s = time.monotonic()
        await telemetry.read(platform.stores.ledger)
        await _check_claims(platform)
        telemetry.remember_speeds()
        took_s = time.monotonic() - began_s
        if telemetry.board.has_readers:
            telemetry.board.write(families(platform))
        idle_looks = idle_looks + 1 if telemetry.gate.arrived == arrived else 0
        arrived = telemetry.gate.arrived
        every_s = IDLE_EVERY_S if idle_looks > RECENT_LOOKS else EVERY_S
        await asyncio.sleep(min(max(every_s, SHARE * took_s), LONGEST_PAUSE_S))


async def _check_claims(platform: Platform) -> None:
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            for event_id in list(platform.box_office.openings.events)[:1]:
                await platform.stores.claims.lost(event_id)
    except (FrontrowError, TimeoutError, OSError):
        platform.server.telemetry.store_errors["claims"] += 1
