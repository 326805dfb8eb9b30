"""The example event for which people queue (`frontrow serve --demo`): simulated visitors keep its waiting room busy.

They join, wait, look at the shop and leave, as everybody else in that room. A visitor waits for those who came before:
with `VISITORS` people of whom `CAPACITY` are inside for about ten seconds each, that is about a quarter of a minute.
Nobody simulated buys, so the seats are there when one's turn has come.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from frontrow.app.demo_season import BUSY_ID
from frontrow.app.simulated_visitors import simulate_visitors
from frontrow.core.background_tasks import start_task
from frontrow.core.clock import US_PER_S
from frontrow.web.platform.platform import Platform

VISITORS: Final = 40
CAPACITY: Final = 15
WINDOW: Final = 3
GRACE_US: Final = 15 * US_PER_S  # places of visitors who went with an earlier start of the server are soon over
MESSAGE: Final = "The people before you are simulated. You wait for them as for anybody else."
LOOK_EVERY_S: Final = 0.25
MAX_LOOKS: Final = 240  # the event is not on sale here


@contextlib.asynccontextmanager
async def keep_busy(platform: Platform) -> AsyncIterator[None]:
    """Simulated people queue for the busy event inside, if this server sells it."""
    queueing = start_task(_queue(platform), "simulated visitors", event_id=BUSY_ID)
    try:
        yield
    finally:
        queueing.cancel()
        await asyncio.gather(queueing, return_exceptions=True)


async def _queue(platform: Platform) -> None:
    room = platform.room.service
    for _ in range(MAX_LOOKS):
        if BUSY_ID in room.cache.events():
            await room.control.configure(
                BUSY_ID, capacity=CAPACITY, window_size=WINDOW, grace_us=GRACE_US, message=MESSAGE
            )
            await simulate_visitors(room, BUSY_ID, VISITORS)
        await asyncio.sleep(LOOK_EVERY_S)
