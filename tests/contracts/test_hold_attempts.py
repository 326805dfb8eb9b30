"""The contract of attempts over both implementations and all stores, and over broken implementations (canaries)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import redis

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.model.claims import SeatClaim
from frontrow.boxoffice.holds.model.holds import HoldResult
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.core.errors import FrontrowError, Unavailable
from tests.boxoffice.shop import EVENT, shop_plan, sqlite_url
from tests.contracts import hold_attempts as contract
from tests.contracts.attempt_servers import Attempts, attempt_servers
from tests.contracts.hold_attempts import CONTRACT, Contract

IMPLEMENTATIONS = {"plain": PlainAttempts, "fast": AttemptRunner}


@contextlib.asynccontextmanager
async def opened_claims(redis_url: str | None) -> AsyncIterator[tuple[SeatClaims, Callable[[], None]]]:
    """An empty claim store and what loses its content."""
    if redis_url is None:
        memory = MemoryClaims()

        def forget() -> None:
            memory.forget(EVENT)
            memory.learn(EVENT, shop_plan())

        yield memory, forget
        return

    def flush() -> None:
        with redis.Redis.from_url(redis_url) as client:
            client.flushdb()

    claims = RedisClaims(redis_url)
    try:
        yield claims, flush
    finally:
        await claims.aclose()


@contextlib.asynccontextmanager
async def opened_ledger(url: str) -> AsyncIterator[SqlLedger]:
    ledger = await open_ledger(url, auto_migrate=False)
    try:
        yield ledger
    finally:
        await ledger.aclose()


async def run(check: Contract, attempts: Attempts, ledger_url: str, redis_url: str | None = None) -> None:
    async with (
        opened_claims(redis_url) as (claims, lose_claims),
        opened_ledger(ledger_url) as ledger,
        attempt_servers(claims, ledger, attempts, lose_claims) as servers,
    ):
        await check(servers)


@pytest.mark.parametrize("ledger", ["sqlite", "postgres"])
@pytest.mark.parametrize("claims", ["memory", "redis"])
@pytest.mark.parametrize("attempts", IMPLEMENTATIONS)
@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
async def test_contract(
    check: Contract, attempts: str, claims: str, ledger: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """B3, B4, F1, F4, F5, N2, N4: see each function's docstring."""
    ledger_url = sqlite_url(tmp_path) if ledger == "sqlite" else str(request.getfixturevalue("postgres_ledger_url"))
    redis_url = str(request.getfixturevalue("redis_url")) if claims == "redis" else None
    await run(check, IMPLEMENTATIONS[attempts], ledger_url, redis_url)


class KeepsTheClaimOfWhoLeft(PlainAttempts):
    """Does not release a claim that was won after the caller had left."""

    async def _claim_and_place(self, claim: SeatClaim, asked: Any) -> HoldResult:
        answer = await self._claims.claim(claim, asked.now_us)
        if asked.caller.done():
            raise asyncio.CancelledError
        return await super()._claim_and_place(claim, asked) if answer else answer


class AlwaysAsksTheLedger(PlainAttempts):
    """Looks neither at the claim store's answer nor at whether the caller still waits."""

    async def _claim_and_place(self, claim: SeatClaim, asked: Any) -> HoldResult:
        await self._claims.claim(claim, asked.now_us)
        return await self._place(claim.seats, asked)


class StopsWithItsCaller(PlainAttempts):
    """A caller who leaves cancels the attempt, wherever it is."""

    def _start(self, attempt: Coroutine[Any, Any, HoldResult], caller: "asyncio.Future[HoldResult]") -> None:
        before = set(self._tasks)
        super()._start(attempt, caller)
        (task,) = self._tasks - before
        caller.add_done_callback(lambda _: task.cancel())


class KeepsARefusedClaim(PlainAttempts):
    """Passes the ledger's refusal on without releasing the claim."""

    async def _release_and_refuse(self, seats: tuple[int, ...], asked: Any, error: FrontrowError) -> Any:
        asked.sale.seats.mark_free(seats)
        self._stats.refused_by_ledger += 1
        raise error


class ReleasesByGuess(PlainAttempts):
    """Takes a ledger that does not answer for one that refuses."""

    async def _place(self, seats: tuple[int, ...], asked: Any) -> HoldResult:
        try:
            return await super()._place(seats, asked)
        except Unavailable as error:
            await self._release_and_refuse(seats, asked, error)
            raise


class ReleasesItsOwnSeats(PlainAttempts):
    """Releases every seat of a refused repetition, also those that the booking has."""

    async def _release_and_refuse(self, seats: tuple[int, ...], asked: Any, error: FrontrowError) -> Any:
        await self._claims.release(EVENT, seats, asked.booking_id)
        return await super()._release_and_refuse(seats, asked, error)


class FailsWithTheRelease(PlainAttempts):
    """Lets the failure of a release take the place of the refusal."""

    async def _release_and_refuse(self, seats: tuple[int, ...], asked: Any, error: FrontrowError) -> Any:
        await self._held.release_refused(asked.sale, asked.booking_id, seats, error, asked.now_us)
        return await super()._release_and_refuse(seats, asked, error)


class KeepsTheSecondChoice(PlainAttempts):
    """Does not release seats that a repeated request claimed beside those of the first answer."""

    async def _place(self, seats: tuple[int, ...], asked: Any) -> HoldResult:
        spawn, self._background.spawn = self._background.spawn, lambda work, then=None: work.close()  # type: ignore
        try:
            return await super()._place(seats, asked)
        finally:
            self._background.spawn = spawn  # type: ignore[method-assign]


class NeverDoubts(PlainAttempts):
    """Does not ask claim recovery to look."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._held.report_doubt = lambda event_id: None  # type: ignore[method-assign]


class LearnsNothing(PlainAttempts):
    """Does not tell the seat cache who has a refused seat."""

    async def _claim_and_place(self, claim: SeatClaim, asked: Any) -> HoldResult:
        answer = await super()._claim_and_place(claim, asked)
        asked.sale.seats.mark_free(claim.seats)
        return answer


class ClosesAtOnce(PlainAttempts):
    async def aclose(self) -> None:
        await asyncio.sleep(0)


CANARIES: list[tuple[Attempts, Contract]] = [
    (KeepsTheClaimOfWhoLeft, contract.a_caller_who_leaves_before_the_claim_is_answered_leaves_nothing),
    (AlwaysAsksTheLedger, contract.a_caller_who_leaves_before_the_claim_is_answered_leaves_nothing),
    (AlwaysAsksTheLedger, contract.a_seat_of_another_server_is_refused_and_from_then_on_without_asking),
    (StopsWithItsCaller, contract.a_caller_who_leaves_at_the_ledger_has_the_hold),
    (KeepsARefusedClaim, contract.the_cap_of_a_person_holds_under_races),
    (KeepsARefusedClaim, contract.a_ledger_with_a_full_line_refuses_and_frees_the_seat),
    (KeepsARefusedClaim, contract.a_store_filled_again_between_claim_and_ledger_sells_no_seat_twice),
    (ReleasesByGuess, contract.a_ledger_that_is_down_keeps_the_claim_until_its_answer_is_known),
    (ReleasesItsOwnSeats, contract.the_same_key_for_other_seats_is_refused_and_keeps_the_hold),
    (FailsWithTheRelease, contract.a_claim_that_cannot_be_released_keeps_no_refusal_back),
    (KeepsTheSecondChoice, contract.the_best_seats_of_the_same_key_are_those_of_the_first_answer),
    (NeverDoubts, contract.a_lost_claim_store_holds_nothing_until_it_is_filled),
    (NeverDoubts, contract.what_only_the_ledger_has_is_refused_released_and_doubted),
    (LearnsNothing, contract.a_seat_of_another_server_is_refused_and_from_then_on_without_asking),
    (ClosesAtOnce, contract.closing_waits_for_attempts_and_releases),
]


@pytest.mark.parametrize(("canary", "check"), CANARIES, ids=lambda part: part.__name__)
async def test_canary(canary: Attempts, check: Contract, tmp_path: Path) -> None:
    """The contract catches an implementation that is wrong in this one way."""
    with pytest.raises((AssertionError, pytest.fail.Exception, FrontrowError, TimeoutError)):
        await run(check, canary, sqlite_url(tmp_path))
