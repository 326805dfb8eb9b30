"""`LimitService`: what both interfaces share. It owns the stores, counts of refusals, leases and metrics."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import Any

from frontrow.core.clock import Clock, SystemClock, steady
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.limits.http.headers import Field, HeaderBuilder, QuotaPolicy
from frontrow.limits.metrics import LimitMetrics
from frontrow.limits.quota import Decision, Quota, Rule
from frontrow.limits.reservations import Reservation
from frontrow.limits.stores.protocol import CHECK, DEFAULT_PREFIX, PEEK, REFUND, StoreResult
from frontrow.limits_service.leases import Lease, LeaseBook, MemoryLeaseBook, RedisLeaseBook, UnknownLease
from frontrow.limits_service.limit_stores import Charge, LimitStore, QuotaStores, StorePlace, check_each
from frontrow.limits_service.refused_keys import MemoryRefusals, RedisRefusals, RefusalCounts
from frontrow.limits_service.request_bodies import INLINE, BodyReader
from frontrow.limits_service.service_config import ServiceConfig

MAX_HEADER_SETS = 4096
_NO_RULE = Rule("none", "1/second")  # of a file whose domains have only limits of zero and none


class LeasesNeedTheStore(Unavailable):
    code = "limit_store_down"


class LimitService:
    """The rules of a file over their store."""

    def __init__(self, config: ServiceConfig, *, clock: Clock | None = None) -> None:
        self.config = config
        self.settings = config.settings
        limits = config.limits
        self.clock = steady(clock or SystemClock())
        place = StorePlace(limits.store, self.clock, limits.on_store_down, limits.deadline_ms / 1000)
        self.metrics = LimitMetrics()
        self.store = LimitStore(config.rules() or [_NO_RULE], place)
        self.metrics.follow(self.store.stats)
        self.quotas = QuotaStores(place, self.settings.max_quotas, self._follow)
        self.tiers = config.tiers()
        inline = self.quotas if self.settings.inline_quotas else None
        self.bodies = BodyReader(
            config.requests, config.plain_part, self.store, inline, self.tiers, self.settings.max_key_chars
        )
        self.refusals: RefusalCounts = MemoryRefusals() if place.is_memory else RedisRefusals(limits.store)
        self.leases: LeaseBook = (
            MemoryLeaseBook(self.settings.max_leases)
            if place.is_memory
            else RedisLeaseBook(limits.store, DEFAULT_PREFIX, place.deadline_s)
        )
        self._headers: dict[Any, HeaderBuilder] = {}
        self.draining = False

    def _follow(self, store: LimitStore) -> None:
        self.metrics.follow(store.stats, "quotas of callers")

    # -- decisions -----------------------------------------------------------------------------------------------

    def decide(self, charge: Charge, op: int = CHECK) -> StoreResult | Awaitable[StoreResult]:
        """Decide a charge: at once in memory, else something to wait for."""
        if not charge.of.is_memory:
            return self.adecide(charge, op)
        began_ns = time.perf_counter_ns()
        result = charge.decide(op)
        if op == CHECK:
            self.note(charge, result.decision, time.perf_counter_ns() - began_ns)
        return result

    async def adecide(self, charge: Charge, op: int = CHECK) -> StoreResult:
        """`decide` for callers that wait."""
        began_ns = time.perf_counter_ns()
        result = await charge.adecide(op)
        if op == CHECK:
            self.note(charge, result.decision, time.perf_counter_ns() - began_ns)
        return result

    async def check_each(self, charges: Sequence[Charge]) -> list[StoreResult]:
        """Check several charges, each on its own."""
        began_ns = time.perf_counter_ns()
        results = await check_each(charges)
        took_ns = time.perf_counter_ns() - began_ns
        for charge, result in zip(charges, results, strict=True):
            self.note(charge, result.decision, took_ns)
        return results

    def note(self, charge: Charge, decision: Decision, took_ns: int) -> None:
        """Count how long a check took, and which key was refused."""
        self.metrics.record_latency(decision, took_ns)
        if not decision.allowed:
            self.refusals.count(decision.rule, charge.key_of(decision.rule))

    def headers(self, charge: Charge, decision: Decision) -> list[Field]:
        """The X-RateLimit and RateLimit headers of a decision."""
        known = charge.of, charge.slots
        builder = self._headers.get(known)
        if builder is None:
            if len(self._headers) >= MAX_HEADER_SETS:
                self._headers.clear()
            builder = self._headers[known] = self._build_headers(charge)
        return builder.of(decision)

    def _build_headers(self, charge: Charge) -> HeaderBuilder:
        slots = [charge.of.slots[at] for at in dict.fromkeys(charge.slots)]
        told = [QuotaPolicy.of(slot.rule.name, slot.quota) for slot in slots if not slot.rule.shadow]
        silent = [QuotaPolicy.of(slot.rule.name, slot.quota) for slot in slots if slot.rule.shadow]
        limits: Any = self.config.limits
        return HeaderBuilder(told, silent, dialect=limits.dialect, reset=limits.reset)

    # -- leases --------------------------------------------------------------------------------------------------

    async def take_lease(self, charge: Charge, ttl_s: float, at_least: int) -> tuple[str, Lease | None, Decision]:
        """Charge units to be spent later. Fewer than asked for, down to `at_least`, if no more are left.

        While the store is down nothing is leased: no policy hands out shares.
        """
        charge = await self._shrink(charge, at_least)
        charged_us = self.clock()
        return await asyncio.shield(asyncio.ensure_future(self._charge_lease(charge, ttl_s, charged_us)))

    async def _shrink(self, charge: Charge, at_least: int) -> Charge:
        if at_least >= charge.cost:
            return charge
        left = (await self.adecide(charge._replace(cost=1), PEEK)).decision.remaining
        return charge._replace(cost=max(at_least, min(charge.cost, left)))

    async def _charge_lease(self, charge: Charge, ttl_s: float, charged_us: int) -> tuple[str, Lease | None, Decision]:
        decision = (await self.adecide(charge)).decision
        if decision.source != "store":
            if decision.allowed:
                await self.adecide(charge, REFUND)
            raise LeasesNeedTheStore("the limit store is down, so nothing is leased; ask for each", retry_after_s=1.0)
        if not decision.allowed:
            return "", None, decision
        named = tuple((charge.of.slots[at].rule.name, charge.of.slots[at].tier) for at in charge.slots)
        quota = "" if charge.of is self.store else "; ".join(str(slot.quota) for slot in charge.of.slots)
        lease = Lease(named, charge.keys, charge.cost, charged_us, decision, quota)
        try:
            return await self.leases.put(lease, ttl_s), lease, decision
        except Unavailable:
            await self.adecide(charge, REFUND)
            raise

    async def return_lease(self, lease_id: str, used: int) -> Decision:
        """Give back what was not used, as far as it still counts. Once per lease."""
        if not 0 <= used <= 2 * self.settings.max_lease_units:
            raise InvalidInput(f"used must be from 0 to {2 * self.settings.max_lease_units}, not {used}", param="used")
        return await asyncio.shield(asyncio.ensure_future(self._return_lease(lease_id, used)))

    async def _return_lease(self, lease_id: str, used: int) -> Decision:
        lease = await self.leases.take(lease_id)
        store = self.quotas.of(INLINE, Quota.parse_all(lease.quota)) if lease.quota else self.store
        if any(rule not in store.slot_of for rule in lease.rules):
            raise UnknownLease("a rule of this lease is gone since it was taken; its units stay charged", param="lease")
        slots = tuple(store.slot_of[rule] for rule in lease.rules)
        request = Charge(store, slots, lease.keys, lease.units).request(CHECK)
        known = [store.slots[at] for at in slots]
        held = Reservation(store.store, request, lease.decision, known, lease.charged_us, self.clock, _wake_nobody)
        return await held.asettle(used)

    # -- ending --------------------------------------------------------------------------------------------------

    @property
    def store_error(self) -> str:
        """Why the store is down; empty while it answers."""
        return self.store.stats.store_error

    async def aclose(self) -> None:
        await self.quotas.aclose()
        await self.store.store.aclose()
        await self.leases.aclose()
        await self.refusals.aclose()
        await self.tiers.aclose()


def _wake_nobody(_slots: Any, _keys: Any) -> None:
    """Nobody waits in line inside the service."""
