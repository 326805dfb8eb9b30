"""The waiting room as a service: status, claim, and how a visit goes on and ends (renew, hear, leave, keep, give back).

Joining is in `joining`, organisers in `organiser`.

Hot paths: `join` is one store call shared by everybody who arrives during a round trip; `status` is a pure function of
the verified place and the cached window; `now_serving` hands out cached bytes. `start()` keeps the cache fresh, leads
when it is this process' turn, and rebuilds a store that lost its memory (`RoomLoops`).
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from frontrow.core.clock import Clock, WallClock
from frontrow.core.coalescer import Coalescer
from frontrow.core.errors import NotFound
from frontrow.core.guest_identity import person_of_place
from frontrow.waitingroom.credentials.fan_codes import Codes
from frontrow.waitingroom.credentials.key_binding import check_proof
from frontrow.waitingroom.credentials.now_serving import NowServing
from frontrow.waitingroom.credentials.passes import Pass, PassSigner, place_of
from frontrow.waitingroom.credentials.places import PlaceSigner, b64
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.errors import NotYourTurn, PassEnded, PassExpired, StayTooLong
from frontrow.waitingroom.model.results import Claimed, Joined, PlaceStatus, RoomView, claim_refusal
from frontrow.waitingroom.model.room_state import VisitResult
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.ports import (
    Audit,
    ClaimRow,
    EndedVisit,
    PlaceKey,
    RoomStore,
    Roster,
    VisitAnswer,
    VisitAsk,
    VisitOp,
)
from frontrow.waitingroom.service.join import Joining
from frontrow.waitingroom.service.room_cache import KnownRoom

__all__ = ["Claimed", "Joined", "PlaceStatus", "RoomView", "WaitingRoom"]


class WaitingRoom(Joining):
    """All rooms of one process; store, audit, keys and clock come from outside."""

    def __init__(
        self,
        store: RoomStore,
        audit: Audit,
        keys: RoomKeys,
        *,
        clock: Clock | None = None,
        owner: str | None = None,
        lease_ttl_us: int = 5_000_000,
        refresh_us: int = 250_000,
        durable_joins: bool = False,
        codes: Codes | None = None,
        proof_clock: Clock | None = None,
        sale_clock: Clock | None = None,
    ) -> None:
        """`clock` is only used to check passes and proofs; the window and new passes go by the store's clock.
        `durable_joins`: a join is answered after its audit row is on disk (the embedded mode). `sale_clock` is what
        the end of a presale goes by, if it is another."""
        clock = clock or WallClock()
        super().__init__(
            store, audit, keys, clock, owner=owner, lease_ttl_us=lease_ttl_us, refresh_us=refresh_us,
            durable_joins=durable_joins,
        )  # fmt: skip
        self.codes = codes or Codes(keys.master_secret)
        self._proof_clock = proof_clock or clock  # browsers date their proofs by the wall clock
        self.sale_clock = sale_clock or clock
        self.places = PlaceSigner(keys.place_secrets)
        self.passes = PassSigner(keys.pass_keys)
        self._visits: dict[str, Coalescer[VisitAsk, VisitAnswer]] = {}

    # -- people ------------------------------------------------------------------------------------------------------

    def status(self, place_jwt: str, event: str | None = None) -> PlaceStatus:
        """The state of a place. Pure and synchronous. Raises PlaceInvalid, PlaceForeign, RoomUnknown."""
        place = self.places.verify(place_jwt, event)
        return self.known(place.event).status(place)

    def status_json(self, place_jwt: str, event: str | None = None) -> bytes:
        """`status` as the JSON that people get."""
        place = self.places.recent.get(place_jwt)
        if place is None or place.event != event:
            place = self.places.verify(place_jwt, event)
        return (self._known.get(place.event) or self.known(place.event)).status_json(place)

    async def claim(
        self, place_jwt: str, event: str | None = None, idempotency_key: str | None = None, proof: str | None = None
    ) -> Claimed:
        """Exchange an active place, once, for a pass. The same idempotency key gets the same pass again. `proof` is
        needed for a bound place (`binding.py`). Raises PlaceInvalid, PlaceForeign, PlaceExpired, NotYourTurn,
        AlreadyClaimed, RoomFull, RoomHeld, ProofInvalid, Unavailable."""
        place = self.places.verify(place_jwt, event)
        known = self.known(place.event)
        check_proof(place_jwt, place, proof, self._proof_clock() // 1_000_000)
        told = known.status(place)
        if told.state is PlaceState.WAITING:
            await self.look_again(place.event)
            told = known.status(place)
        if told.state is PlaceState.WAITING:
            raise NotYourTurn("your place is not active yet", retry_after_s=told.poll_after_s, ahead=told.ahead)
        position = known.effective(place)
        ttl_s = known.state.config.pass_ttl_s
        tag = int.from_bytes(hashlib.sha256(idempotency_key.encode()).digest()[:4]) or 1 if idempotency_key else 0
        key = PlaceKey(place.lane, place.epoch, position)
        ask = VisitAsk(VisitOp.CLAIM, key, ttl_s, 0, tag, known.slide_of(place.lane, position))
        answer = await self._visit(known, ask)
        refused = claim_refusal(answer.result)
        if refused is not None:
            self.counts[f"claim_{answer.result.value}"] += 1
            raise refused
        person = place.person or person_of_place(place.event, place.lane, place.epoch, position, place.issued_s)
        since_s = answer.expires_s - ttl_s
        visit = Pass(place.event, person, key, since_s, answer.expires_s, since_s, place.jkt)
        await self._record_visit(visit, answer.expires_s, tag)
        self.counts["claims"] += answer.result is VisitResult.OK
        return Claimed(self.passes.mint(visit), answer.expires_s, answer.result is VisitResult.REPEATED)

    async def renew(self, pass_jwt: str, event: str | None = None) -> Claimed:
        """A pass with a later expiry for a live visit. While a hold keeps the visit, a pass that has run out can be
        renewed too. Raises PassInvalid, PassExpired, PassEnded, StayTooLong."""
        visit = self.read_pass(pass_jwt, event)
        known = self.known(visit.event)
        config = known.state.config
        until_s = visit.since_s + config.max_stay_s
        now_s = self.clock() // 1_000_000
        ran_out = now_s >= visit.expires_s
        if ran_out and not visit.place.epoch:
            raise PassExpired("this pass has run out; join again", expires_s=visit.expires_s)
        answer = await self._visit(known, VisitAsk(VisitOp.RENEW, visit.place, config.pass_ttl_s, until_s))
        if answer.result not in (VisitResult.OK, VisitResult.REPEATED):
            if ran_out:
                raise PassExpired("this pass has run out; join again", expires_s=visit.expires_s)
            raise PassEnded("this visit has ended; join again")
        if answer.expires_s <= visit.expires_s and until_s <= visit.expires_s:
            raise StayTooLong(f"a visit lasts at most {config.max_stay_s} seconds")
        return await self._longer(visit, answer)

    async def keep(self, visit_id: str, until_s: int, hold: str) -> VisitAnswer:
        """A hold is alive until then: its visit lasts at least as long. 0: that hold is over."""
        event, place = place_of(visit_id)
        if not place.epoch:
            return VisitAnswer(VisitResult.OK)
        return await self._visit(self.known(event), VisitAsk(VisitOp.KEEP, place, until_s=until_s, hold=hold))

    async def keep_pass(self, pass_jwt: str, until_s: int, hold: str) -> Claimed | None:
        """`keep` for the visit of this pass, and a pass that lasts as long; None if it lasts long enough already.
        Raises PassInvalid, PassEnded."""
        visit = self.read_pass(pass_jwt)
        answer = await self.keep(visit.id, until_s, hold)
        if answer.result not in (VisitResult.OK, VisitResult.REPEATED):
            raise PassEnded("this visit has ended; join again")
        return await self._longer(visit, answer) if answer.expires_s > visit.expires_s else None

    async def _longer(self, visit: Pass, answer: VisitAnswer) -> Claimed:
        issued_s = max(visit.issued_s, answer.expires_s - self.known(visit.event).state.config.pass_ttl_s)
        fresh = replace(visit, issued_s=issued_s, expires_s=answer.expires_s)
        await self._record_visit(fresh, answer.expires_s, 0)
        return Claimed(self.passes.mint(fresh), answer.expires_s, answer.result is VisitResult.REPEATED)

    def hear(self, visit_id: str) -> None:
        """The visitor made a request: the idle time begins again. Costs no round trip; the store is told soon."""
        event, place = place_of(visit_id)
        known = self._known.get(event)
        if known is not None and place.epoch and known.state.config.idle_s:
            known.heard[place] = known.state.now_us // 1_000_000

    async def heartbeat(self, pass_jwt: str, event: str | None = None) -> VisitAnswer:
        """The visitor is still there: when the visit ends unless there is more to hear. Raises as `renew` does."""
        return await self._go_on(pass_jwt, event, VisitOp.HEAR)

    async def leave_shop(self, pass_jwt: str, event: str | None = None) -> VisitAnswer:
        """A page of the shop was closed: the visit ends soon, unless the visitor is heard again or a hold keeps it."""
        return await self._go_on(pass_jwt, event, VisitOp.LEAVE)

    async def _go_on(self, pass_jwt: str, event: str | None, op: VisitOp) -> VisitAnswer:
        visit = self.read_pass(pass_jwt, event)
        if not visit.place.epoch:
            self.check_pass(pass_jwt, event)
            return VisitAnswer(VisitResult.OK, visit.expires_s, 0, visit.expires_s)
        answer = await self._visit(self.known(visit.event), VisitAsk(op, visit.place))
        if answer.result is not VisitResult.OK:
            raise PassEnded("this visit has ended; join again")
        return answer

    async def give_back(self, pass_jwt: str, event: str | None = None) -> bool:
        """End a visit (finished or left): the capacity returns at once. False if it had ended before."""
        visit = self.passes.verify(pass_jwt, event, self.clock() // 1_000_000)
        return await self._end(visit.event, visit.place, visit.expires_s, visit.person)

    async def end_visit(self, visit_id: str) -> bool:
        """`give_back` for whoever knows the visit but has no pass: the box office, once a purchase is complete."""
        event, place = place_of(visit_id)
        return bool(place.epoch) and await self._end(event, place, 0, "")

    async def _end(self, event: str, place: PlaceKey, expires_s: int, person: str) -> bool:
        known = self.known(event)
        if place in known.ended:
            return False
        answer = await self._visit(known, VisitAsk(VisitOp.GIVE_BACK, place, until_s=expires_s))
        now_us = self.clock()
        latest_s = max(expires_s, answer.expires_s)
        known.end([EndedVisit(place, latest_s)], now_us // 1_000_000)
        if answer.result is VisitResult.OK:
            begun = [] if place.epoch else [ClaimRow(place, expires_s, now_us, person)]
            await self.audit.append(event, [*begun, ClaimRow(place, 0, now_us, person)])
        return answer.result is VisitResult.OK

    def check_pass(self, pass_jwt: str, event: str | None = None) -> Pass:
        """The pass, verified without a round trip: signature, event, expiry, and not ended anywhere (each process
        follows the list of ended visits). Raises PassInvalid, PassForeign, PassExpired, PassEnded."""
        visit = self.passes.verify(pass_jwt, event, self.clock() // 1_000_000)
        return self._not_ended(visit)

    def read_pass(self, pass_jwt: str, event: str | None = None) -> Pass:
        """`check_pass` for a pass that may have run out, as it may while a hold keeps its visit."""
        return self._not_ended(self.passes.read(pass_jwt, event))

    def _not_ended(self, visit: Pass) -> Pass:
        known = self._known.get(visit.event)
        if known is not None and visit.place in known.ended:
            raise PassEnded("this visit has ended; join again")
        return visit

    async def check_pass_live(self, pass_jwt: str, event: str | None = None) -> Pass:
        """Like `check_pass`, and asks the store whether the visit ended in the last second."""
        visit = self.check_pass(pass_jwt, event)
        if not await self.store.live(visit.event, visit.place):
            raise PassEnded("this visit has ended; join again")
        return visit

    def now_serving(self, event: str) -> NowServing:
        """The signed document as cached bytes. Raises RoomUnknown."""
        return self.known(event).document

    def subscribe(self, event: str, listener: Callable[[NowServing], None]) -> Callable[[], None]:
        """Call `listener` with each new document, from the event loop; returns the way to stop it. Must not block."""
        return self.known(event).subscribe(listener)

    def jwks(self) -> dict[str, Any]:
        """The public keys: of the passes (RS256) and of the now-serving document (Ed25519, kid `now-serving`)."""
        public = b64(self.keys.document_key.public_key().public_bytes_raw()).decode()
        return {
            "keys": [
                *self.passes.jwks()["keys"],
                {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "now-serving", "x": public},
            ]
        }

    # -- rooms by identity only (W8) ----------------------------------------------------------------------------------

    async def rank(self, place_jwt: str) -> int | None:
        """How many people still in line are before this place; None if its person has left."""
        place = self.places.verify(place_jwt)
        return await self._roster(place.event).rank(place.event, place.lane, place.person)

    async def leave(self, place_jwt: str) -> bool:
        """Leave the line."""
        place = self.places.verify(place_jwt)
        return await self._roster(place.event).leave(place.event, place.lane, place.person)

    def _roster(self, event: str) -> Roster:
        if not self._by_identity(self.known(event)):
            raise NotFound("this room is anonymous: it has no roster")
        return cast(Roster, self.store)

    # -- parts ---------------------------------------------------------------------------------------------------------

    async def _visit(self, known: KnownRoom, ask: VisitAsk) -> VisitAnswer:
        visits = self._visits.get(known.event)
        if visits is None:

            async def send(asks: Sequence[VisitAsk]) -> Sequence[VisitAnswer | BaseException]:
                return await self._with_recovery(known, lambda: self.store.visit(known.event, asks))

            visits = self._visits.setdefault(known.event, Coalescer(send, name=f"visits of {known.event}"))
        return await visits.ask(ask)

    async def _record_visit(self, visit: Pass, expires_s: int, tag: int) -> None:
        row = ClaimRow(visit.place, expires_s, self.clock(), visit.person, tag)
        await self.audit.append(visit.event, [row])
