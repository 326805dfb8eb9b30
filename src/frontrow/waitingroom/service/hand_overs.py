"""Hands an admitted browser over to a shop on another domain.

The visit begins in the room. The URL to the shop carries a hand-over, which the shop's connector exchanges, once, for a
pass that is bound to this shop. The store decides that it is exchanged once, in the step that finds the visit alive.
Each process remembers what it has exchanged too, in case the store loses a write.
"""

from collections import Counter
from collections.abc import Sequence

from frontrow.core.clock import Clock
from frontrow.waitingroom.credentials.hand_over import (
    HAND_OVER_S,
    HandedVisit,
    HandOverSealer,
    ShopHandOver,
    fits,
    id_of,
    is_bind,
)
from frontrow.waitingroom.credentials.passes import Pass, PassSigner
from frontrow.waitingroom.entrance.used_proofs import MemoryUsedProofs
from frontrow.waitingroom.model.errors import HandOverInvalid, HandOverUsed, PassEnded, PassForeign
from frontrow.waitingroom.model.results import ClaimedPass
from frontrow.waitingroom.model.room_state import VisitResult
from frontrow.waitingroom.ports import EndedVisit, RoomStore, VisitCommand, VisitOp
from frontrow.waitingroom.service.recovery import RoomRecovery
from frontrow.waitingroom.service.room_cache import RoomCache
from frontrow.waitingroom.service.visits import Visits

MOST_ENDED = 5_000  # visits told per call; more come with the next one


class HandOvers:
    """The hand-overs of all rooms of one process."""

    def __init__(
        self,
        *,
        visits: Visits,
        store: RoomStore,
        cache: RoomCache,
        recovery: RoomRecovery,
        passes: PassSigner,
        sealer: HandOverSealer,
        clock: Clock,
        counts: Counter[str],
    ) -> None:
        self._visits = visits
        self._store = store
        self._cache = cache
        self._recovery = recovery
        self._passes = passes
        self._sealer = sealer
        self._clock = clock
        self._counts = counts
        self._used = MemoryUsedProofs(generation_s=2 * HAND_OVER_S)

    # -- in the room ---------------------------------------------------------------------------------------------------

    async def begin(
        self, place_jwt: str, event: str, idempotency_key: str | None = None, proof: str | None = None
    ) -> HandedVisit:
        """Begin the visit of an active place without signing a pass. Raises as `Visits.claim` does."""
        visit = (await self._visits.begin(place_jwt, event, idempotency_key, proof)).visit
        place = visit.place
        return HandedVisit(
            visit.event, place.lane, place.epoch, place.position, visit.person, visit.since_s, jkt=visit.jkt
        )

    def keep(self, visit: HandedVisit) -> str:
        """The text by which this browser is handed over again while its visit lasts."""
        return self._sealer.seal(visit)

    async def find_kept(self, text: str, event: str) -> HandedVisit | None:
        """The visit of a browser that keeps `text`, if it is alive. Raises Unavailable."""
        try:
            visit = self._sealer.open(text, HandedVisit)
        except HandOverInvalid:
            return None
        if visit.event != event:
            return None
        reply = await self._visits.send(self._cache.find(event), VisitCommand(VisitOp.LOOK, visit.place))
        return visit if reply.result is VisitResult.OK else None

    def issue(self, visit: HandedVisit, shop: str, bind: str) -> str:
        """A hand-over to `shop` for the browser with the verifier of `bind`."""
        if not is_bind(bind):
            raise HandOverInvalid("bind is the base64url SHA-256 of the verifier")
        epoch = self._cache.find(visit.event).state.epoch
        self._counts["hand_overs"] += 1
        return self._sealer.seal(ShopHandOver(visit, shop, bind, epoch, self._clock() // 1_000_000 + HAND_OVER_S))

    # -- for the shop's connector --------------------------------------------------------------------------------------

    async def exchange(self, text: str, verifier: str, events: Sequence[str], shops: Sequence[str]) -> ClaimedPass:
        """The pass of a hand-over for one of these events, once. Raises HandOverInvalid, HandOverUsed, PassForeign,
        PassEnded, Unavailable."""
        given = self._sealer.open(text, ShopHandOver)
        visit = given.visit
        event = visit.event
        if event not in events:
            raise PassForeign(f"this hand-over is for another event ({visit.event})", event=visit.event)
        if given.shop not in shops:
            raise PassForeign("this shop is not registered at the room any more", shop=given.shop)
        if not fits(verifier, given.bind):
            raise HandOverInvalid("this hand-over belongs to another browser")
        room, now_us = self._cache.find(event), self._clock()
        if now_us // 1_000_000 >= given.expires_s or given.room_epoch < room.state.epoch:
            raise HandOverInvalid("this hand-over has expired; the waiting room issues another one")
        if not self._used.mark_used(id_of(text), HAND_OVER_S, now_us):
            raise HandOverUsed("this hand-over was used before; the waiting room issues another one")
        command = VisitCommand(VisitOp.HAND_OVER, visit.place, given.room_epoch, given.expires_s, hold=id_of(text))
        reply = await self._visits.send(room, command)
        if reply.result is VisitResult.ALREADY:
            raise HandOverUsed("this hand-over was used before; the waiting room issues another one")
        if reply.result is VisitResult.EXPIRED:
            raise HandOverInvalid("this hand-over has expired; the waiting room issues another one")
        if reply.result is not VisitResult.OK or visit.place in room.ended:
            raise PassEnded("this visit has ended; join again")
        self._counts["exchanges"] += 1
        issued_s = now_us // 1_000_000
        bound = Pass(
            event, visit.person, visit.place, issued_s, reply.expires_s, visit.since_s, visit.jkt, shop=given.shop
        )
        return ClaimedPass(self._passes.mint(bound), reply.expires_s)

    async def ended(self, event: str, after: str) -> tuple[str, bool, list[str]]:
        """The visits that ended since `after`, each as `visit id:expiry of its pass`; the mark to ask with next time;
        and whether these are all of them. A mark of another epoch is one from before the room was rebuilt."""
        room = self._cache.find(event)
        epoch = room.state.epoch
        marked, _, number = after.partition(".")
        known = int(number) if marked == str(epoch) and number.isdecimal() and len(number) <= 15 else 0
        last, some = await self._recovery.call_with_rebuild(event, lambda: self._store.ended(event, known, MOST_ENDED))
        return f"{epoch}.{last}", len(some) < MOST_ENDED, [_entry(event, one) for one in some]


def _entry(event: str, one: EndedVisit) -> str:
    return f"{event}.{one.place.lane}.{one.place.epoch}.{one.place.position}:{one.expires_s}"
