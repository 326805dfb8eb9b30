"""Visits to the shop: claim a pass for an active place, renew it, keep it during a hold, end it.

A visit is one entry in the room's store. Requests about visits that arrive during a round trip share one store call.
Each claim, renewal and return is written to the audit before it is answered.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from frontrow.core.clock import Clock
from frontrow.shared.coalescer import Coalescer
from frontrow.shared.guest_identity import person_of_place
from frontrow.waitingroom.credentials.key_binding import check_proof
from frontrow.waitingroom.credentials.passes import Pass, PassSigner, place_of
from frontrow.waitingroom.credentials.places import Place, PlaceSigner
from frontrow.waitingroom.model.errors import NotYourTurn, PassEnded, PassExpired, StayTooLong
from frontrow.waitingroom.model.results import ClaimedPass, claim_refusal
from frontrow.waitingroom.model.room_state import VisitResult
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.ports import (
    Audit,
    ClaimRow,
    EndedVisit,
    PlaceKey,
    RoomStore,
    VisitCommand,
    VisitOp,
    VisitReply,
)
from frontrow.waitingroom.service.loops import RoomLoops
from frontrow.waitingroom.service.recovery import RoomRecovery
from frontrow.waitingroom.service.room_cache import CachedRoom, RoomCache


@dataclass(frozen=True, slots=True)
class BegunVisit:
    """A visit that was claimed; `repeated` if the same claim was made before."""

    visit: Pass
    repeated: bool = False


class Visits:
    """The visits of all rooms of one process."""

    def __init__(
        self,
        *,
        store: RoomStore,
        audit: Audit,
        cache: RoomCache,
        loops: RoomLoops,
        recovery: RoomRecovery,
        places: PlaceSigner,
        passes: PassSigner,
        clock: Clock,
        proof_clock: Clock,
        counts: Counter[str],
    ) -> None:
        self._store = store
        self._audit = audit
        self._cache = cache
        self._loops = loops
        self._recovery = recovery
        self._places = places
        self._passes = passes
        self._clock = clock
        self._proof_clock = proof_clock
        self._counts = counts
        self._batches: dict[str, Coalescer[VisitCommand, VisitReply]] = {}

    # -- begin and continue --------------------------------------------------------------------------------------------

    async def claim(
        self, place_jwt: str, event: str | None = None, idempotency_key: str | None = None, proof: str | None = None
    ) -> ClaimedPass:
        """`begin`, and the pass of the visit."""
        return self._issue(await self.begin(place_jwt, event, idempotency_key, proof))

    async def begin(
        self, place_jwt: str, event: str | None = None, idempotency_key: str | None = None, proof: str | None = None
    ) -> BegunVisit:
        """Exchange an active place, once, for a visit. The same idempotency key gets the same visit again. A bound
        place needs a `proof` (see `key_binding`). Raises PlaceInvalid, PlaceForeign, PlaceExpired, NotYourTurn,
        AlreadyClaimed, RoomFull, RoomHeld, ProofInvalid, Unavailable."""
        place = self._places.verify(place_jwt, event)
        check_proof(place_jwt, place, proof, self._proof_clock() // 1_000_000)
        return await self._begin(place, idempotency_key)

    async def claim_place(self, place: Place, idempotency_key: str | None = None) -> ClaimedPass:
        """`claim` without a proof, for a caller that has just joined. Raises NotYourTurn and the errors after it."""
        return self._issue(await self._begin(place, idempotency_key))

    def _issue(self, begun: BegunVisit) -> ClaimedPass:
        return ClaimedPass(self._passes.mint(begun.visit), begun.visit.expires_s, begun.repeated)

    async def _begin(self, place: Place, idempotency_key: str | None) -> BegunVisit:
        room = self._cache.find(place.event)
        status = room.status(place)
        if status.state is PlaceState.WAITING:
            await self._loops.refresh(place.event)
            status = room.status(place)
        if status.state is PlaceState.WAITING:
            raise NotYourTurn("your place is not active yet", retry_after_s=status.poll_after_s, ahead=status.ahead)
        position = room.position_of(place)
        ttl_s = room.state.config.pass_ttl_s
        tag = int.from_bytes(hashlib.sha256(idempotency_key.encode()).digest()[:4]) or 1 if idempotency_key else 0
        key = PlaceKey(place.lane, place.epoch, position)
        command = VisitCommand(VisitOp.CLAIM, key, ttl_s, 0, tag, room.slide_of(place.lane, position))
        reply = await self.send(room, command)
        refusal = claim_refusal(reply.result)
        if refusal is not None:
            self._counts[f"claim_{reply.result.value}"] += 1
            raise refusal
        person = place.person or person_of_place(place.event, place.lane, place.epoch, position, place.issued_s)
        since_s = reply.expires_s - ttl_s
        visit = Pass(place.event, person, key, since_s, reply.expires_s, since_s, place.jkt)
        await self._record(visit, reply.expires_s, tag)
        self._counts["claims"] += reply.result is VisitResult.OK
        return BegunVisit(visit, reply.result is VisitResult.REPEATED)

    async def renew(self, pass_jwt: str, event: str | None = None) -> ClaimedPass:
        """Issue a pass with a later expiry for a live visit. While a hold keeps the visit, an expired pass can be
        renewed too. Raises PassInvalid, PassExpired, PassEnded, StayTooLong."""
        visit = self.read_pass(pass_jwt, event)
        room = self._cache.find(visit.event)
        config = room.state.config
        until_s = visit.since_s + config.max_stay_s
        expired = self._clock() // 1_000_000 >= visit.expires_s
        if expired and not visit.place.epoch:
            raise PassExpired("this pass has run out; join again", expires_s=visit.expires_s)
        reply = await self.send(room, VisitCommand(VisitOp.RENEW, visit.place, config.pass_ttl_s, until_s))
        if reply.result not in (VisitResult.OK, VisitResult.REPEATED):
            if expired:
                raise PassExpired("this pass has run out; join again", expires_s=visit.expires_s)
            raise PassEnded("this visit has ended; join again")
        if reply.expires_s <= visit.expires_s and until_s <= visit.expires_s:
            raise StayTooLong(f"a visit lasts at most {config.max_stay_s} seconds")
        return await self._issue_longer_pass(visit, reply)

    async def keep(self, visit_id: str, until_s: int, hold: str) -> VisitReply:
        """Make a visit last at least until `until_s`, the end of its hold. 0: the hold has ended."""
        event, place = place_of(visit_id)
        if not place.epoch:
            return VisitReply(VisitResult.OK)
        command = VisitCommand(VisitOp.KEEP, place, until_s=until_s, hold=hold)
        return await self.send(self._cache.find(event), command)

    async def keep_pass(self, pass_jwt: str, until_s: int, hold: str) -> ClaimedPass | None:
        """`keep` for the visit of this pass. Returns a pass that lasts as long, or None if this one already does.
        Raises PassInvalid, PassEnded."""
        visit = self.read_pass(pass_jwt)
        reply = await self.keep(visit.id, until_s, hold)
        if reply.result not in (VisitResult.OK, VisitResult.REPEATED):
            raise PassEnded("this visit has ended; join again")
        return await self._issue_longer_pass(visit, reply) if reply.expires_s > visit.expires_s else None

    async def _issue_longer_pass(self, visit: Pass, reply: VisitReply) -> ClaimedPass:
        pass_ttl_s = self._cache.find(visit.event).state.config.pass_ttl_s
        issued_s = max(visit.issued_s, reply.expires_s - pass_ttl_s)
        fresh = replace(visit, issued_s=issued_s, expires_s=reply.expires_s)
        await self._record(fresh, reply.expires_s, 0)
        return ClaimedPass(self._passes.mint(fresh), reply.expires_s, reply.result is VisitResult.REPEATED)

    def hear(self, visit_id: str) -> None:
        """Note a request of the visitor, which restarts the idle time. Costs no round trip: the loop reports it."""
        self.hear_place(*place_of(visit_id))

    def hear_place(self, event: str, place: PlaceKey) -> None:
        """`hear` for the visit of this place."""
        room = self._cache.rooms.get(event)
        if room is not None and place.epoch and room.state.config.idle_s:
            room.heard[place] = room.state.now_us // 1_000_000
            room.use()

    async def heartbeat(self, pass_jwt: str, event: str | None = None) -> VisitReply:
        """`hear` at once in the store. The reply says when the visit ends. Raises as `renew` does."""
        return await self._send_for_pass(pass_jwt, event, VisitOp.HEAR)

    async def look(self, pass_jwt: str, event: str | None = None) -> VisitReply:
        """When the visit ends. Counts as no activity. Raises as `renew` does."""
        return await self._send_for_pass(pass_jwt, event, VisitOp.LOOK)

    async def leave_shop(self, pass_jwt: str, event: str | None = None) -> VisitReply:
        """Note that a page was closed: the visit ends soon, unless the visitor makes a request or a hold keeps it."""
        return await self._send_for_pass(pass_jwt, event, VisitOp.LEAVE)

    async def _send_for_pass(self, pass_jwt: str, event: str | None, op: VisitOp) -> VisitReply:
        visit = self.read_pass(pass_jwt, event)
        if not visit.place.epoch:
            self.check_pass(pass_jwt, event)
            return VisitReply(VisitResult.OK, visit.expires_s, 0, visit.expires_s)
        reply = await self.send(self._cache.find(visit.event), VisitCommand(op, visit.place))
        if reply.result is not VisitResult.OK:
            raise self._ended_error(visit)
        return reply

    def _ended_error(self, visit: Pass) -> PassEnded:
        """The refusal of a visit that has ended. `idle`: nobody was heard of while others waited. `passed_on`: somebody
        was admitted since. Neither is said unless this process knows it."""
        room = self._cache.rooms.get(visit.event)
        idle = room is not None and room.ended_idle(visit.place)
        passed_on = room is not None and room.passed_on(visit.place)
        return PassEnded("this visit has ended; join again", idle=idle, passed_on=passed_on)

    # -- end -----------------------------------------------------------------------------------------------------------

    async def give_back(self, pass_jwt: str, event: str | None = None) -> bool:
        """End a visit and free its capacity at once. False if it had ended before."""
        visit = self._passes.verify(pass_jwt, event, self._clock() // 1_000_000)
        return await self._end(visit.event, visit.place, visit.expires_s, visit.person)

    async def end_visit(self, visit_id: str) -> bool:
        """`give_back` without the pass: for the box office, once a purchase is complete."""
        event, place = place_of(visit_id)
        return bool(place.epoch) and await self._end(event, place, 0, "")

    async def _end(self, event: str, place: PlaceKey, expires_s: int, person: str) -> bool:
        room = self._cache.find(event)
        if place in room.ended:
            return False
        reply = await self.send(room, VisitCommand(VisitOp.GIVE_BACK, place, until_s=expires_s))
        now_us = self._clock()
        latest_s = max(expires_s, reply.expires_s)
        room.end_visits([EndedVisit(place, latest_s)], now_us // 1_000_000)
        if reply.result is VisitResult.OK:
            begun = [] if place.epoch else [ClaimRow(place, expires_s, now_us, person)]
            await self._audit.append(event, [*begun, ClaimRow(place, 0, now_us, person)])
        return reply.result is VisitResult.OK

    # -- check ---------------------------------------------------------------------------------------------------------

    def check_pass(self, pass_jwt: str, event: str | None = None) -> Pass:
        """The pass, verified without a round trip: signature, event, expiry, and not ended in any process (each one
        follows the list of ended visits). Raises PassInvalid, PassForeign, PassExpired, PassEnded."""
        return self._check_not_ended(self._passes.verify(pass_jwt, event, self._clock() // 1_000_000))

    def read_pass(self, pass_jwt: str, event: str | None = None) -> Pass:
        """`check_pass` for a pass that may have expired, as it may while a hold keeps its visit."""
        return self._check_not_ended(self._passes.read(pass_jwt, event))

    def _check_not_ended(self, visit: Pass) -> Pass:
        room = self._cache.rooms.get(visit.event)
        if room is None:
            return visit
        room.use()
        if visit.place in room.ended:
            raise self._ended_error(visit)
        return visit

    # -- parts ---------------------------------------------------------------------------------------------------------

    async def send(self, room: CachedRoom, command: VisitCommand) -> VisitReply:
        """The store's answer to a request about a visit. Requests that arrive during a round trip share the next."""
        room.use()
        batches = self._batches.get(room.event)
        if batches is None:

            async def send(commands: Sequence[VisitCommand]) -> Sequence[VisitReply | BaseException]:
                return await self._recovery.call_with_rebuild(
                    room.event, lambda: self._store.visit(room.event, commands)
                )

            batches = self._batches.setdefault(room.event, Coalescer(send, name=f"visits of {room.event}"))
        return await batches.ask(command)

    async def _record(self, visit: Pass, expires_s: int, tag: int) -> None:
        row = ClaimRow(visit.place, expires_s, self._clock(), visit.person, tag)
        await self._audit.append(visit.event, [row])
