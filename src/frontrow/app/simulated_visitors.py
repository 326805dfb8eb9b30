"""Simulated visitors who join, wait, browse and leave, and are then replaced.

So a room that is served alone shows a queue that moves. They use the room's own service, as people's requests do.
"""

import asyncio
import contextlib
import random
from typing import Final

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.errors import RoomFull
from frontrow.waitingroom.model.results import ClaimedPass
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.service.room import WaitingRoom

STAY_S: Final = 10.0  # how long one looks at the shop
LOOK_EVERY_S: Final = 0.5
MAX_LOOKS: Final = 10_000
ARRIVE_WITHIN_S: Final = 2.0


async def simulate_visitors(room: WaitingRoom, event: str, visitors: int) -> None:
    """Keep so many visitors coming, until cancelled."""
    await asyncio.gather(*(_keep_coming(room, event, random.Random(number)) for number in range(visitors)))


async def _keep_coming(room: WaitingRoom, event: str, rng: random.Random) -> None:
    await asyncio.sleep(rng.random() * ARRIVE_WITHIN_S)
    while True:
        with contextlib.suppress(FrontrowError):  # a paused or full room: the next one tries again
            await _visit(room, event, rng)
        await asyncio.sleep(LOOK_EVERY_S)


async def _visit(room: WaitingRoom, event: str, rng: random.Random) -> None:
    place = (await room.joins.join(event)).place_jwt
    for _ in range(MAX_LOOKS):
        if room.statuses.of(place, event).state is not PlaceState.WAITING:
            break
        await asyncio.sleep(LOOK_EVERY_S * (1 + rng.random()))
    claimed = await _claim(room, event, place)
    try:
        await asyncio.sleep(STAY_S * (0.5 + rng.random()))
    finally:  # also when the server stops: a visit that nobody ends would keep others out after its restart
        await room.visits.give_back(claimed.pass_jwt, event)


async def _claim(room: WaitingRoom, event: str, place: str) -> ClaimedPass:
    """As a page does: who finds the shop full asks again, because the room keeps a place for everybody who knocks."""
    for _ in range(MAX_LOOKS):
        try:
            return await room.visits.claim(place, event)
        except RoomFull:
            await asyncio.sleep(LOOK_EVERY_S)
    return await room.visits.claim(place, event)
