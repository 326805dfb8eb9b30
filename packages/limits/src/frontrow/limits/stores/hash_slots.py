"""Rules that a Redis Cluster cannot decide in one step, because their keys live in different hash slots.

Rules that count by the same key share a slot and are one group. A check reserves its units group by group, in the order
of the rules. When a group refuses, the units reserved before are taken back.

Nothing is over-admitted: a request is allowed only when every rule has charged it, and a group takes back only what of
the reserved units still counts (not what has drained, left the window or belongs to an earlier one). The price is paid
by refusals: between the two steps another caller can be refused because of units that come back. If the process dies or
a node does not answer in between, they do not come back, and age like used ones: for at most the life of the quota.
"""

import asyncio
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from frontrow.core.background_tasks import carry_out
from frontrow.core.failures import failures_here
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.protocol import (
    CHECK,
    REFUND,
    RESERVE,
    TAKE_BACK,
    QuotaSlot,
    ReserveResult,
    Store,
    StoreRequest,
    StoreResult,
)
from frontrow.limits.stores.redis_script import hash_tag


class Group(NamedTuple):
    """The part of a request that one hash slot decides, and its positions in the request."""

    request: StoreRequest
    positions: tuple[int, ...]


Steps = Generator[list[StoreRequest], list[Any], StoreResult]  # yields what to send at once, receives the results


class HashSlotStore:
    """Decides requests over several hash slots of `inner`, a Cluster."""

    tag_parts = None

    def __init__(self, inner: Store, slots: Sequence[QuotaSlot]) -> None:
        self._inner = inner
        self._slots = tuple(slots)

    def decide(self, request: StoreRequest) -> StoreResult:
        steps = self._steps(request)
        try:
            requests = next(steps)
            while True:
                try:
                    results = [self._inner.decide(each) for each in requests]
                except StoreDown as error:
                    requests = steps.throw(error)
                else:
                    requests = steps.send(results)
        except StopIteration as finished:
            result: StoreResult = finished.value
            return result

    async def adecide(self, request: StoreRequest) -> StoreResult:
        """`decide` for asyncio. When it is cancelled, all the steps are still taken: all is charged, or nothing."""
        if len({hash_tag(key) for key in request.keys}) == 1:
            return await self._inner.adecide(request)
        return await carry_out(self._take_steps(request), "limit steps")

    async def _take_steps(self, request: StoreRequest) -> StoreResult:
        steps = self._steps(request)
        try:
            requests = next(steps)
            while True:
                try:
                    results = await asyncio.gather(*(self._inner.adecide(each) for each in requests))
                except StoreDown as error:
                    requests = steps.throw(error)
                else:
                    requests = steps.send(results)
        except StopIteration as finished:
            result: StoreResult = finished.value
            return result

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    # -- the steps both share ------------------------------------------------------------------------------------

    def _steps(self, request: StoreRequest) -> Steps:
        groups = group_by_slot(request)
        if request.op != CHECK or len(groups) == 1:
            return self._combine(groups, (yield [group.request for group in groups]))
        results: list[StoreResult] = []
        undo: list[StoreRequest] = []
        for group in groups:
            try:
                reservation: ReserveResult
                [reservation] = yield [group.request._replace(op=RESERVE)]
            except StoreDown:
                yield from _take_back(undo)
                raise
            results.append(reservation.result)
            if not reservation.result.decision.allowed:
                yield from _take_back(undo)
                break
            undo.append(_undo_request(group.request, reservation))
        return self._combine(groups[: len(results)], results)

    def _combine(self, groups: Sequence[Group], results: Sequence[StoreResult]) -> StoreResult:
        """One result: the refusal with the longest wait, or else the one with least left."""
        shadowed = tuple(
            sorted(group.positions[at] for group, result in zip(groups, results, strict=True) for at in result.shadowed)
        )
        judged = [
            result.decision for group, result in zip(groups, results, strict=True) if not self._is_shadow(group)
        ] or [results[0].decision]
        refused = [decision for decision in judged if not decision.allowed]
        if refused:
            return StoreResult(max(refused, key=lambda decision: decision.retry_after_us), shadowed)
        decision = min(judged, key=lambda decision: decision.remaining)
        return StoreResult(decision._replace(delay_us=max(each.delay_us for each in judged)), shadowed)

    def _is_shadow(self, group: Group) -> bool:
        return all(self._slots[at].rule.shadow for at in group.request.slots)


def group_by_slot(request: StoreRequest) -> list[Group]:
    """The request's parts by hash slot, in the order of their first rules."""
    by_tag: dict[str, list[int]] = {}
    for at, key in enumerate(request.keys):
        by_tag.setdefault(hash_tag(key), []).append(at)
    return [
        Group(
            request._replace(
                slots=tuple(request.slots[at] for at in positions),
                keys=tuple(request.keys[at] for at in positions),
                tag=request.keys[positions[0]],
            ),
            tuple(positions),
        )
        for positions in by_tag.values()
    ]


def _undo_request(request: StoreRequest, reservation: ReserveResult) -> StoreRequest:
    if request.now_us is not None:  # the caller's time stands still between the steps
        return request._replace(op=REFUND)
    return request._replace(op=TAKE_BACK, now_us=reservation.charged_us)


def _take_back(undo: list[StoreRequest]) -> Generator[list[StoreRequest], list[Any], None]:
    """Take back what was reserved. If the store does not answer, it stays charged."""
    if undo:
        try:
            yield undo
        except StoreDown as error:
            failures_here().note("limit refunds", error)
