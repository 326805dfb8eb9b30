"""Takes requests for notices, and sends them shortly before the turn.

The leader of a room looks every two seconds at who asked. A notice is claimed in one conditional update before it is
sent, so two servers never send the same one; a server that dies while it sends leaves it to the next, which sends it
again after a minute. Retries and the notices of one address are bounded.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, NotFound, Refused
from frontrow.core.failures import note_failure, note_success
from frontrow.waitingroom.credentials.places import Place
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.notices.model import (
    CLAIM_US,
    MOST_PER_ADDRESS,
    MOST_TRIES,
    RETRY_S,
    Nearness,
    NoticeState,
    TurnNotice,
    TurnNoticeKind,
    checked_address,
    nearness,
)
from frontrow.waitingroom.service.room import WaitingRoom

EVERY_S: Final = 2.0
MOST_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of one attempt; `final` and not `ok`: trying again would not help."""

    ok: bool
    final: bool = True


class NoticeSender(Protocol):
    """Sends a notice over one channel. Never raises."""

    async def send(self, notice: TurnNotice) -> Sent: ...


class NoticeBook(Protocol):
    """Keeps who asked. Every call may raise Unavailable."""

    async def ask(self, notice: TurnNotice) -> None:
        """Keep it; asking again for the same place and channel replaces the address, until it was sent."""
        ...

    async def count(self, event: str, address_hash: str) -> int:
        """How many notices this address was asked for in this room, sent ones included."""
        ...

    async def events(self) -> list[str]:
        """The rooms in which somebody is still to be told."""
        ...

    async def waiting(self, event: str, now_us: int, limit: int) -> list[TurnNotice]:
        """Those that are not sent and not claimed, by arrival."""
        ...

    async def claim(self, notice: TurnNotice, until_us: int) -> bool:
        """Count an attempt; False if another server was faster."""
        ...

    async def settle(self, notice_id: str, state: NoticeState) -> None:
        """It is over: the address is erased."""
        ...

    async def retry(self, notice_id: str, at_us: int) -> None: ...

    async def withdraw(self, event: str, notice_ids: tuple[str, ...]) -> None:
        """Forget these as if nobody had asked."""
        ...

    async def aclose(self) -> None: ...


def address_hash(event: str, address: str) -> str:
    """What is kept of an address after it was erased, to count by."""
    return hashlib.sha256(f"frontrow notice:{event}:{address}".encode()).hexdigest()[:32]


class TurnNotices:
    """The notices of all rooms of this process."""

    def __init__(
        self, book: NoticeBook, room: WaitingRoom, senders: Mapping[TurnNoticeKind, NoticeSender], clock: Clock
    ) -> None:
        self._book, self._room, self._senders, self._clock = book, room, senders, clock

    @property
    def kinds(self) -> tuple[TurnNoticeKind, ...]:
        """The channels that are set up."""
        return tuple(self._senders)

    async def ask(self, place_jwt: str, event: str, kind: TurnNoticeKind, to: str, language: str) -> TurnNotice:
        """Tell this person shortly before the turn of their place."""
        if kind not in self._senders:
            raise NotFound(f"this room sends no {kind.value}")
        place, address = self._room.places.verify(place_jwt, event), checked_address(kind, to)
        cached = self._room.cache.find(event)
        if cached.state.phase is not Phase.PREQUEUE:
            position = cached.position_of(place)
            if position <= cached.state.lanes[place.lane].window.lo:
                raise Refused("this place is over")
        if await self._book.count(event, address_hash(event, address)) >= MOST_PER_ADDRESS:
            raise Refused("this address was asked for too often")
        notice = TurnNotice(
            notice_id(place, kind),
            event,
            place.lane,
            place.epoch,
            place.position,
            kind,
            address,
            language,
            self._clock(),
        )
        await self._book.ask(notice)
        return notice

    async def withdraw(self, place_jwt: str, event: str) -> None:
        """Send nothing for this place."""
        place = self._room.places.verify(place_jwt, event)
        await self._book.withdraw(event, tuple(notice_id(place, kind) for kind in TurnNoticeKind))

    async def aclose(self) -> None:
        await self._book.aclose()

    async def run(self) -> None:
        """Send what is due until cancelled."""
        while True:
            try:
                known = set(self._room.cache.events())
                for event in await self._book.events():
                    if event in known:
                        await self.send_due(event)
                note_success()
            except FrontrowError as error:  # the book is away: tried again
                note_failure(error)
            await asyncio.sleep(EVERY_S)

    async def send_due(self, event: str) -> int:
        """Send the notices of this room whose turn is near, if this process leads it; how many."""
        view = self._room.control.view(event)
        if not self._senders or view.state.phase is Phase.PREQUEUE or not (view.is_leader or not view.leader):
            return 0
        sent = 0
        for notice in await self._book.waiting(event, self._clock(), MOST_AT_ONCE):
            sent += await self._send(notice)
        return sent

    async def _send(self, notice: TurnNotice) -> int:
        cached = self._room.cache.find(notice.event)
        place = Place(notice.event, notice.lane, notice.epoch, notice.arrival, 0)
        position, rate = cached.position_of(place), cached.rates_milli[notice.lane]
        where = nearness(cached.state.phase, cached.state.lanes[notice.lane].window, position, rate)
        if where is Nearness.OVER:
            await self._book.settle(notice.id, NoticeState.OVER)
        if where is not Nearness.NEAR or not await self._book.claim(notice, self._clock() + CLAIM_US):
            return 0
        done = await self._senders[notice.kind].send(notice)
        if done.ok:
            await self._book.settle(notice.id, NoticeState.SENT)
            return 1
        if done.final or notice.tries + 1 >= MOST_TRIES:
            await self._book.settle(notice.id, NoticeState.FAILED)
        else:
            await self._book.retry(notice.id, self._clock() + (notice.tries + 1) * RETRY_S * 1_000_000)
        return 0


def notice_id(place: Place, kind: TurnNoticeKind) -> str:
    """One notice per place and channel."""
    text = f"{place.event}:{place.lane}:{place.epoch}:{place.position}:{kind.value}"
    return "ntc_" + hashlib.sha256(text.encode()).hexdigest()[:32]
