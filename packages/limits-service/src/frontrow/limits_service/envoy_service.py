"""Envoy's rate limit service v3 over gRPC: `ShouldRateLimit`, and gRPC's health check.

By default the descriptors of a request are charged all or none: a request that one descriptor refuses costs the others
nothing. With `decide = "each"` every descriptor is charged on its own and a refused one uses up what was left, as in
Envoy's reference service.
"""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.core.failures import failures_here
from frontrow.limits.http.headers import Field, retry_s
from frontrow.limits.quota import MAX_LIMIT, Decision, Quota
from frontrow.limits.stores.protocol import CHARGE, CHECK, PEEK
from frontrow.limits_service import envoy_messages as messages
from frontrow.limits_service.descriptors import DescriptorLimit, Found, pack_entries
from frontrow.limits_service.limit_service import LimitService
from frontrow.limits_service.limit_stores import Charge, LimitStore, decide_together
from frontrow.limits_service.settings import MAX_RULES

OVERRIDE = "override"  # the rule of limits that Envoy sends along
MAX_ENTRIES = 32


class Asked(NamedTuple):
    """One descriptor: what it found (`None`: no limit), in which store and slot it counts, and how many hits."""

    limit: DescriptorLimit | None = None
    of: LimitStore | None = None
    slot: int = 0
    key: bytes = b""
    hits: int = 1

    @property
    def quota(self) -> Quota:
        assert self.limit is not None, "asked only of limits"
        assert self.limit.quota is not None, "asked only of limits with a quota"
        return self.limit.quota

    @property
    def rule(self) -> str:
        return self.limit.rule if self.limit is not None else ""

    @property
    def never_fits(self) -> bool:
        """Whether so many hits can never be allowed. A shadow limit allows everything."""
        assert self.limit is not None, "asked only of limits"
        return self.hits > self.quota.capacity and not self.limit.shadow


class EnvoyService:
    """Answers `ShouldRateLimit`."""

    def __init__(self, service: LimitService) -> None:
        self._service = service
        self._domains = service.config.domains
        self._each = service.settings.decide == "each"
        self._max_chars = service.settings.max_key_chars

    async def should_rate_limit(self, request: Any) -> Any:
        """The response to a request, or `InvalidInput`."""
        asked = self._read(request)
        zeros = [each for each in asked if each.limit is not None and each.limit.is_zero]
        for each in zeros:
            self._service.refusals.count(each.rule, each.key)
        counted = [each for each in asked if each.of is not None]
        if self._each:
            decisions = await self._decide_each(counted)
        elif zeros or any(each.never_fits for each in counted):
            decisions = await self._peek(counted)
        else:
            decisions = await self._decide_all(counted)
        return self._respond(asked, dict(zip(map(id, counted), decisions, strict=True)))

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self, request: Any) -> list[Asked]:
        """What each descriptor asks. A limit that another one of the same request replaces does not count."""
        domain, descriptors = request.domain, request.descriptors
        if not domain:
            raise InvalidInput("the domain is empty", param="domain")
        if not 1 <= len(descriptors) <= MAX_RULES:
            message = f"a request has 1 to {MAX_RULES} descriptors, not {len(descriptors)}"
            raise InvalidInput(message, param="descriptors")
        hits = request.hits_addend or 1
        asked = [self._read_descriptor(domain, descriptor, hits) for descriptor in descriptors]
        replaced = {name for each in asked if each.limit is not None for name in each.limit.replaces}
        if replaced:
            asked = [Asked() if each.limit is not None and each.limit.name in replaced else each for each in asked]
        return asked if self._each or len(asked) == 1 else _merge(asked)

    def _read_descriptor(self, domain: str, descriptor: Any, hits: int) -> Asked:
        entries = [(entry.key, entry.value) for entry in descriptor.entries]
        if not 1 <= len(entries) <= MAX_ENTRIES or not all(key for key, _ in entries):
            raise InvalidInput(f"a descriptor has 1 to {MAX_ENTRIES} entries, each with a key", param="entries")
        if any(len(text) > self._max_chars for pair in entries for text in pair):
            raise InvalidInput(f"keys and values have at most {self._max_chars} characters", param="entries")
        if descriptor.HasField("hits_addend"):
            hits = descriptor.hits_addend.value
        if descriptor.HasField("limit"):
            return self._read_override(domain, entries, descriptor.limit, hits)
        found: Found | None = self._domains.find(domain, entries)
        if found is None:
            return Asked()
        if found.limit.quota is None:
            return Asked(found.limit, key=found.key, hits=hits)
        store = self._service.store
        return Asked(found.limit, store, store.find_slot(found.limit.rule), found.key, hits)

    def _read_override(self, domain: str, entries: Sequence[tuple[str, str]], limit: Any, hits: int) -> Asked:
        period_us = messages.UNIT_US.get(limit.unit)
        if period_us is None:
            raise InvalidInput(f"the override's unit {limit.unit} is unknown", param="limit")
        if limit.requests_per_unit == 0:
            return Asked(DescriptorLimit(OVERRIDE, None, per_us=period_us), hits=hits)
        quota = Quota(min(limit.requests_per_unit, MAX_LIMIT - 1), period_us, "fixed_window")
        store = self._service.quotas.of(OVERRIDE, (quota,))
        key = pack_entries([("domain", domain), *entries])
        return Asked(DescriptorLimit(OVERRIDE, quota), store, 0, key, hits)

    # -- deciding ----------------------------------------------------------------------------------------------

    async def _decide_all(self, counted: Sequence[Asked]) -> list[Decision]:
        """Charge all or none."""
        if not counted:
            return []
        began_ns = time.perf_counter_ns()
        charges = [charge for charge in _group(counted) if charge.cost]
        results = await decide_together(charges) if charges else []
        took_ns = time.perf_counter_ns() - began_ns
        for charge, result in zip(charges, results, strict=True):
            self._service.note(charge, result.decision, took_ns)
        if len(counted) == 1 and counted[0].hits:
            return [results[0].decision]
        refused = [result.decision for result in results if not result.decision.allowed]
        decisions = await self._peek(counted)
        if not refused:
            return [decision if each.hits == 0 else _allowed(decision) for each, decision in _both(counted, decisions)]
        return _with_refusal(counted, decisions, refused)

    async def _peek(self, counted: Sequence[Asked]) -> list[Decision]:
        """What is left for each, without charging."""
        charges = [
            Charge(_of(each), (each.slot,), (each.key,), min(each.hits or 1, each.quota.capacity)) for each in counted
        ]
        results = await asyncio.gather(*(charge.adecide(PEEK) for charge in charges))
        return [
            _never(each, result.decision) if each.never_fits else result.decision
            for each, result in _both(counted, results)
        ]

    async def _decide_each(self, counted: Sequence[Asked]) -> list[Decision]:
        return list(await asyncio.gather(*(self._decide_one(each) for each in counted)))

    async def _decide_one(self, each: Asked) -> Decision:
        """Charge one descriptor. If it is refused, use up what was left, as Envoy's reference service does."""
        if not each.hits:
            return (await self._peek([each]))[0]
        charge = Charge(_of(each), (each.slot,), (each.key,), min(each.hits, each.quota.capacity))
        if each.never_fits:
            decision = (await self._peek([each]))[0]
        else:
            decision = (await self._service.adecide(charge, CHECK)).decision
        if not decision.allowed and each.hits > 1 and decision.source == "store":
            most = min(each.hits, 2 * each.quota.capacity)
            after = (await charge._replace(cost=most).adecide(CHARGE)).decision
            return decision._replace(remaining=after.remaining)
        return decision

    # -- responding --------------------------------------------------------------------------------------------

    def _respond(self, asked: Sequence[Asked], decisions: dict[int, Decision]) -> Any:
        response = messages.RateLimitResponse(overall_code=messages.OK)
        tightest: tuple[Asked, Decision] | None = None
        for each in asked:
            decision = decisions.get(id(each))
            if not self._tell_status(response.statuses.add(), each, decision):
                response.overall_code = messages.OVER_LIMIT
            if decision is not None and (tightest is None or _tightness(decision) < _tightness(tightest[1])):
                tightest = each, decision
        if self._service.settings.shadow:
            response.overall_code = messages.OK
        if self._service.settings.response_headers and tightest is not None:
            refused = response.overall_code == messages.OVER_LIMIT
            for name, value in self._fields(*tightest, refused=refused):
                response.response_headers_to_add.add(key=name.decode(), value=value.decode())
        return response

    def _tell_status(self, status: Any, each: Asked, decision: Decision | None) -> bool:
        """Fill in the status of one descriptor. `False` if it is over its limit."""
        status.code = messages.OK
        if each.limit is None:
            return True
        if each.limit.unlimited:
            status.limit_remaining = messages.MAX_UINT32
            return True
        current = status.current_limit
        if each.limit.name:
            current.name = each.limit.name
        if decision is None:  # a limit of zero
            current.unit = messages.UNIT_OF.get(each.limit.per_us, 0)
            until_us = each.limit.per_us - self._service.clock() % each.limit.per_us
            _set_duration(status.duration_until_reset, until_us)
            status.code = messages.OVER_LIMIT
            return False
        current.requests_per_unit, current.unit = each.quota.limit, messages.UNIT_OF.get(each.quota.period_us, 0)
        status.limit_remaining = min(decision.remaining, messages.MAX_UINT32)
        _set_duration(status.duration_until_reset, decision.retry_after_us or decision.reset_after_us)
        if decision.allowed or each.limit.shadow:
            return True
        status.code = messages.OVER_LIMIT
        return False

    def _fields(self, each: Asked, decision: Decision, *, refused: bool) -> list[Field]:
        charge = Charge(_of(each), (each.slot,), (each.key,), 1)
        fields = self._service.headers(charge, decision)
        return [*fields, (b"retry-after", b"%d" % retry_s(decision))] if refused else fields


def _of(each: Asked) -> LimitStore:
    assert each.of is not None, "asked only of limits that a store counts"
    return each.of


def _both(counted: Sequence[Asked], others: Sequence[Any]) -> Any:
    return zip(counted, others, strict=True)


def _merge(asked: Sequence[Asked]) -> list[Asked]:
    """A descriptor that is there twice asks for the hits of both, in both places."""
    hits: dict[tuple[LimitStore | None, int, bytes], int] = {}
    for each in asked:
        hits[each[1:4]] = hits.get(each[1:4], 0) + each.hits
    return [each if each.of is None else each._replace(hits=hits[each[1:4]]) for each in asked]


def _group(counted: Sequence[Asked]) -> list[Charge]:
    """One charge per store and number of hits, with each key once."""
    groups: dict[tuple[LimitStore, int], dict[tuple[int, bytes], None]] = {}
    for each in counted:
        number = min(each.hits, each.quota.capacity)
        groups.setdefault((_of(each), number), {})[each.slot, each.key] = None
    return [
        Charge(store, tuple(slot for slot, _ in places), tuple(key for _, key in places), number)
        for (store, number), places in groups.items()
    ]


def _allowed(decision: Decision) -> Decision:
    """What was charged is allowed, whatever is left for the next."""
    return decision._replace(allowed=True, retry_after_us=0)


def _never(each: Asked, decision: Decision) -> Decision:
    """More hits than the limit could ever allow."""
    wait_us = decision.retry_after_us or decision.reset_after_us or each.quota.period_us
    return decision._replace(allowed=False, retry_after_us=wait_us)


def _with_refusal(counted: Sequence[Asked], peeked: list[Decision], refused: Sequence[Decision]) -> list[Decision]:
    """What was peeked after a refusal. Meanwhile the refusing limit may have become free: it is told as it refused."""
    if all(decision.allowed for decision in peeked):
        names = {decision.rule: decision for decision in refused}
        for at, each in enumerate(counted):
            if each.limit is not None and each.limit.rule in names:
                peeked[at] = names[each.limit.rule]
    return peeked


def _tightness(decision: Decision) -> tuple[bool, int]:
    return decision.allowed, decision.remaining


def _set_duration(duration: Any, us: int) -> None:
    duration.seconds, duration.nanos = us // US_PER_S, us % US_PER_S * 1000


# -- gRPC ------------------------------------------------------------------------------------------------------------


def add_handlers(server: Any, service: LimitService) -> None:
    """Give a `grpc.aio` server the rate limit service and the health check."""
    envoy, token = EnvoyService(service), service.settings.token.encode()

    async def should_rate_limit(sent: bytes, context: Any) -> Any:
        if token and not _knows_token(context, token):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED, "this service needs its token: authorization: Bearer …"
            )
        try:
            return await envoy.should_rate_limit(_read_message(sent))
        except InvalidInput as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, error.message)
        except FrontrowError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, error.message)
        except Exception as error:
            failures_here().note("answer Envoy", error)
            await context.abort(grpc.StatusCode.INTERNAL, "the service failed to answer; its log says why")

    async def check(request: Any, context: Any) -> Any:
        if request.service not in ("", messages.RATE_LIMIT_SERVICE):
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        return _health(service)

    watching = set[Any]()  # calls without a token, which last as long as their callers like

    async def watch(request: Any, context: Any) -> Any:
        if len(watching) >= MAX_WATCHING:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_WATCHING} callers watch already; use Check")
        watching.add(context)
        try:
            async for health in watched(request):
                yield health
        finally:
            watching.discard(context)

    async def watched(request: Any) -> AsyncIterator[Any]:
        known = request.service in ("", messages.RATE_LIMIT_SERVICE)
        told = None
        while not service.draining or told != messages.NOT_SERVING:
            health = _health(service) if known else messages.HealthCheckResponse(status=messages.SERVICE_UNKNOWN)
            if health.status != told:
                told = health.status
                yield health
            await asyncio.sleep(WATCH_S)

    limit = grpc.unary_unary_rpc_method_handler(  # reads its bytes by itself: gRPC logs rubbish with a traceback
        should_rate_limit, None, messages.RateLimitResponse.SerializeToString
    )
    read, write = messages.HealthCheckRequest.FromString, messages.HealthCheckResponse.SerializeToString
    health = {
        "Check": grpc.unary_unary_rpc_method_handler(check, read, write),
        "Watch": grpc.unary_stream_rpc_method_handler(watch, read, write),
    }
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(messages.RATE_LIMIT_SERVICE, {"ShouldRateLimit": limit}),
            grpc.method_handlers_generic_handler(messages.HEALTH_SERVICE, health),
        )
    )


WATCH_S = 0.5
MAX_WATCHING = 100


def _read_message(sent: bytes) -> Any:
    try:
        return messages.RateLimitRequest.FromString(sent)
    except DecodeError as error:
        raise InvalidInput(f"these bytes are no RateLimitRequest: {error}"[:200], param="request") from None


def _health(service: LimitService) -> Any:
    return messages.HealthCheckResponse(status=messages.NOT_SERVING if service.draining else messages.SERVING)


def _knows_token(context: Any, token: bytes) -> bool:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            kind, _, given = value.partition(" ")
            return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token)
    return False
