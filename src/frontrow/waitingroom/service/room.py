"""The waiting room as a service: builds its parts and closes them.

Callers use a part by its name: `room.joins.join(…)`, `room.visits.claim(…)`, `room.control.pause(…)`.
"""

from collections import Counter
from typing import Any

from frontrow.core.clock import Clock, WallClock
from frontrow.waitingroom.credentials.fan_codes import Codes
from frontrow.waitingroom.credentials.hand_over import HandOverSealer
from frontrow.waitingroom.credentials.passes import ALGORITHMS, DOCUMENT_KEY, PassSigner
from frontrow.waitingroom.credentials.places import PlaceSigner, b64
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.ports import Audit, RoomStore
from frontrow.waitingroom.service.audit_writer import AuditWriter
from frontrow.waitingroom.service.control import RoomControl
from frontrow.waitingroom.service.direct_entry import DirectEntry
from frontrow.waitingroom.service.hand_overs import HandOvers
from frontrow.waitingroom.service.joins import Joins
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.service.loops import RoomLoops
from frontrow.waitingroom.service.recovery import RoomRecovery
from frontrow.waitingroom.service.room_cache import PlaceStatuses, RoomCache
from frontrow.waitingroom.service.roster import Roster
from frontrow.waitingroom.service.shop_reports import ShopReports
from frontrow.waitingroom.service.store_clock import StoreClock
from frontrow.waitingroom.service.visits import Visits


class WaitingRoom:
    """The parts that serve all rooms of one process. Store, audit, keys and clocks are given."""

    def __init__(
        self,
        store: RoomStore,
        audit: Audit,
        keys: RoomKeys,
        *,
        clock: Clock | None = None,
        leadership_ttl_us: int = 5_000_000,
        refresh_us: int = 250_000,
        durable_joins: bool = False,
        proof_clock: Clock | None = None,
        sale_clock: Clock | None = None,
        pass_algorithm: str = ALGORITHMS[0],
    ) -> None:
        """`clock` replaces the store's time when passes are checked; the window and new passes always use the store's.
        `durable_joins`: a join is answered after its audit row is on disk (the embedded mode). Presales end by
        `sale_clock`. Browsers date their proofs by `proof_clock`."""
        self.store = store
        self.audit = audit
        self.keys = keys
        store_clock = StoreClock()
        self.clock = clock or store_clock
        self.sale_clock = sale_clock or self.clock
        self.codes = Codes(keys.master_secret)
        self.places = PlaceSigner(keys.place_secrets)
        self.passes = PassSigner(keys.pass_keys, pass_algorithm)
        self.counts: Counter[str] = Counter()  # this process' totals, for the metrics
        self.cache = RoomCache(keys)
        self.leader = Leader(store, audit, leadership_ttl_us=leadership_ttl_us)
        self._writer = AuditWriter(audit, self.counts)
        recovery = RoomRecovery(
            store=store, audit=audit, writer=self._writer, cache=self.cache, clock=self.clock, counts=self.counts
        )
        self.loops = RoomLoops(
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
        self.joins = Joins(
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
        self.statuses = PlaceStatuses(self.places, self.cache)
        self.roster = Roster(store=store, cache=self.cache, places=self.places)
        self.visits = Visits(
            store=store,
            audit=audit,
            cache=self.cache,
            loops=self.loops,
            recovery=recovery,
            places=self.places,
            passes=self.passes,
            clock=self.clock,
            proof_clock=proof_clock or clock or WallClock(),
            counts=self.counts,
        )
        self.hand_overs = HandOvers(
            visits=self.visits,
            store=store,
            cache=self.cache,
            recovery=recovery,
            passes=self.passes,
            sealer=HandOverSealer(keys.place_secrets),
            clock=self.clock,
            counts=self.counts,
        )
        self.direct_entry = DirectEntry(joins=self.joins, visits=self.visits, cache=self.cache, places=self.places)
        self.control = RoomControl(
            store=store,
            audit=audit,
            cache=self.cache,
            loops=self.loops,
            recovery=recovery,
            owner=self.leader.owner,
        )

        self.shop_reports = ShopReports(
            store=store, cache=self.cache, master_secret=keys.master_secret, clock=self.clock, counts=self.counts
        )

    async def aclose(self) -> None:
        """Stop the loops, resign, write the remaining audit rows, close store and audit."""
        await self.loops.aclose()
        await self._writer.aclose()
        await self.store.aclose()
        await self.audit.aclose()

    def jwks(self) -> dict[str, Any]:
        """The public keys of the passes and of the now-serving document (Ed25519, kid `now-serving`)."""
        public = b64(self.keys.document_key.public_key().public_bytes_raw()).decode()
        return {
            "keys": [
                *self.passes.jwks()["keys"],
                {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": DOCUMENT_KEY, "x": public},
            ]
        }
