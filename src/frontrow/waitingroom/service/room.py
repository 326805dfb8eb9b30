"""The waiting room as a service: builds its parts and offers them as one interface.

Joining is in `join`, passes and visits in `visits`, the organiser's actions in `control`, the background loop in
`loops`. What this process knows of each room is in `room_cache`.

Hot paths: `join_into` is one store call shared by everybody who arrives during a round trip; `status_json` is a pure
function of the verified place and the cached window; `now_serving` hands out cached bytes.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import NotFound
from frontrow.waitingroom.credentials.fan_codes import Codes
from frontrow.waitingroom.credentials.now_serving import NowServing
from frontrow.waitingroom.credentials.passes import ALGORITHMS, DOCUMENT_KEY, PassSigner
from frontrow.waitingroom.credentials.places import PlaceSigner, b64
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.results import PlaceStatus
from frontrow.waitingroom.ports import Audit, PlaceKey, RoomStore
from frontrow.waitingroom.service.audit_writer import AuditWriter
from frontrow.waitingroom.service.control import RoomControl
from frontrow.waitingroom.service.direct_entry import DirectEntry
from frontrow.waitingroom.service.join import JoinQueue
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.service.loops import RoomLoops
from frontrow.waitingroom.service.recovery import RoomRecovery
from frontrow.waitingroom.service.room_cache import RoomCache
from frontrow.waitingroom.service.store_clock import StoreClock
from frontrow.waitingroom.service.visits import Visits


class WaitingRoom:
    """All rooms of one process; store, audit, keys and clocks come from outside."""

    def __init__(
        self,
        store: RoomStore,
        audit: Audit,
        keys: RoomKeys,
        *,
        clock: Clock | None = None,
        owner: str | None = None,
        leadership_ttl_us: int = 5_000_000,
        refresh_us: int = 250_000,
        durable_joins: bool = False,
        codes: Codes | None = None,
        proof_clock: Clock | None = None,
        sale_clock: Clock | None = None,
        pass_algorithm: str = ALGORITHMS[0],
    ) -> None:
        """`clock` replaces the store's time when passes are checked; the window and new passes go by the store anyway.
        `durable_joins`: a join is answered after its audit row is on disk (the embedded mode). `sale_clock` is what
        the end of a presale goes by, and `proof_clock` what browsers date their proofs by, if they differ."""
        self.store = store
        self.audit = audit
        self.keys = keys
        store_clock = StoreClock()
        self.clock = clock or store_clock
        self.sale_clock = sale_clock or self.clock
        self.codes = codes or Codes(keys.master_secret)
        self.places = PlaceSigner(keys.place_secrets)
        self.passes = PassSigner(keys.pass_keys, pass_algorithm)
        self.counts: Counter[str] = Counter()  # this process' totals, for the metrics
        self.cache = RoomCache(keys)
        self.leader = Leader(store, audit, owner=owner, leadership_ttl_us=leadership_ttl_us)
        self._rooms = self.cache.rooms
        self._writer = AuditWriter(audit, self.counts)
        recovery = RoomRecovery(
            store=store, audit=audit, writer=self._writer, cache=self.cache, clock=self.clock, counts=self.counts
        )
        self._loops = RoomLoops(
            store=store,
            cache=self.cache,
            leader=self.leader,
            recovery=recovery,
            writer=self._writer,
            clock=self.clock,
            store_clock=store_clock,
            counts=self.counts,
            refresh_us=refresh_us,
        )
        self._joins = JoinQueue(
            store=store,
            audit=audit,
            writer=self._writer,
            cache=self.cache,
            recovery=recovery,
            places=self.places,
            codes=self.codes,
            sale_clock=self.sale_clock,
            counts=self.counts,
            durable=durable_joins,
        )
        visits = Visits(
            store=store,
            audit=audit,
            cache=self.cache,
            loops=self._loops,
            recovery=recovery,
            places=self.places,
            passes=self.passes,
            clock=self.clock,
            proof_clock=proof_clock or clock or WallClock(),
            counts=self.counts,
        )
        self.direct_entry = DirectEntry(joins=self._joins, visits=visits, cache=self.cache, places=self.places)
        control = RoomControl(
            store=store,
            audit=audit,
            cache=self.cache,
            loops=self._loops,
            recovery=recovery,
            owner=self.leader.owner,
        )

        # The interface: the parts' own methods, so that a hot path costs no extra call.
        self.join = self._joins.join
        self.join_into = self._joins.join_into
        self.joined_json = self._joins.joined_json
        self.import_codes = self._joins.import_codes

        self.enter = self.direct_entry.enter
        self.claim = visits.claim
        self.renew = visits.renew
        self.keep = visits.keep
        self.keep_pass = visits.keep_pass
        self.hear = visits.hear
        self.heartbeat = visits.heartbeat
        self.leave_shop = visits.leave_shop
        self.give_back = visits.give_back
        self.end_visit = visits.end_visit
        self.check_pass = visits.check_pass
        self.read_pass = visits.read_pass

        self.create = control.create
        self.open = control.open
        self.pause = control.pause
        self.resume = control.resume
        self.queue_all = control.queue_all
        self.close = control.close
        self.set_rate = control.set_rate
        self.set_capacity = control.set_capacity
        self.set_message = control.set_message
        self.configure = control.configure
        self.view = control.view
        self.draw_record = control.draw_record

        self.events = self.cache.events
        self.tick = self._loops.tick
        self.start = self._loops.start
        self.forget = self._loops.forget

    async def aclose(self) -> None:
        """Stop the loops, give up the lead, write what the audit is owed, close store and audit."""
        await self._loops.aclose()
        await self._writer.aclose()
        await self.store.aclose()
        await self.audit.aclose()

    # -- places --------------------------------------------------------------------------------------------------------

    def status(self, place_jwt: str, event: str | None = None) -> PlaceStatus:
        """The state of a place. Pure and synchronous. Raises PlaceInvalid, PlaceForeign, RoomUnknown."""
        place = self.places.verify(place_jwt, event)
        return self.cache.find(place.event).status(place)

    def key_of(self, place_jwt: str, event: str | None = None) -> PlaceKey:
        """What a place is called in the store. Raises as `status` does."""
        place = self.places.verify(place_jwt, event)
        return PlaceKey(place.lane, place.epoch, self.cache.find(place.event).position_of(place))

    def status_json(self, place_jwt: str, event: str | None = None) -> bytes:
        """`status` as the JSON that people get."""
        place = self.places.recent.get(place_jwt)
        if place is None or place.event != event:
            place = self.places.verify(place_jwt, event)
        return (self._rooms.get(place.event) or self.cache.find(place.event)).status_json(place)

    async def rank(self, place_jwt: str) -> int | None:
        """How many people still in the queue are before this place; None if its person has left. Only for rooms with
        one place per person (W8)."""
        place = self.places.verify(place_jwt)
        self._check_has_roster(place.event)
        return await self.store.rank(place.event, place.lane, place.person)

    async def leave(self, place_jwt: str) -> bool:
        """Leave the queue. Only for rooms with one place per person (W8)."""
        place = self.places.verify(place_jwt)
        self._check_has_roster(place.event)
        return await self.store.leave(place.event, place.lane, place.person)

    def _check_has_roster(self, event: str) -> None:
        if not self._joins.has_one_place_per_person(self.cache.find(event)):
            raise NotFound("this room is anonymous: it has no roster")

    # -- published documents -------------------------------------------------------------------------------------------

    def now_serving(self, event: str) -> NowServing:
        """The signed document as cached bytes. Raises RoomUnknown."""
        room = self.cache.find(event)
        room.use()
        return room.document

    def subscribe(self, event: str, listener: Callable[[NowServing], None]) -> Callable[[], None]:
        """Call `listener` with each new document, from the event loop; returns how to stop it. Must not block."""
        return self.cache.find(event).subscribe(listener)

    def jwks(self) -> dict[str, Any]:
        """The public keys: of the passes and of the now-serving document (Ed25519, kid `now-serving`)."""
        public = b64(self.keys.document_key.public_key().public_bytes_raw()).decode()
        return {
            "keys": [
                *self.passes.jwks()["keys"],
                {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": DOCUMENT_KEY, "x": public},
            ]
        }
