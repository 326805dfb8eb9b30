"""What cannot be given back is counted and logged: nothing fails in silence."""

import ast
import asyncio
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis.asyncio

from frontrow.core import errors, failures
from frontrow.core.failures import FailureBook, failures_here
from frontrow.limits import ConcurrencyLimiter, Quota, Rule
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.quota import Decision, StoreDown
from frontrow.limits.rules import RequestRule
from frontrow.limits.stores.hash_slots import HashSlotStore
from frontrow.limits.stores.permits import RELEASE, MemoryPermits, PermitAnswer, PermitRequest
from frontrow.limits.stores.protocol import RESERVE, QuotaSlot, ReserveResult, StoreRequest, StoreResult
from frontrow.testing.clock import ManualClock

PACKAGES = Path(__file__).parents[2] / "packages"
OURS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
OURS |= {"StoreDown", "Throttled", "Shed", "InvalidQuota", "InvalidKey", "InvalidCost", "Exception", "BaseException"}


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> FailureBook:
    """The failures of threads without an event loop."""
    book = FailureBook()
    monkeypatch.setattr(failures, "_outside", book)
    return book


def test_a_charge_that_a_thread_cannot_give_back_is_counted_and_logged_once(
    redis_url: str, outside: FailureBook, caplog: pytest.LogCaptureFixture
) -> None:
    """The middleware has a client for asyncio alone, and a plain endpoint refuses in a thread."""
    from fastapi import FastAPI

    from frontrow.limits.http.fastapi import limited

    async def ask() -> list[int]:
        client = redis.asyncio.Redis.from_url(redis_url)
        app = FastAPI()
        app.add_middleware(RateLimitMiddleware, rules=RequestRule("lost", "10/minute"), store=client, deadline_s=5.0)
        app.get("/codes")(limited("1/minute")(lambda: "served"))
        transport = httpx.ASGITransport(app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as asking:
                answers = [await asking.get("/codes") for _ in range(3)]
                assert answers[2].headers["x-ratelimit-remaining"] == "0"
                return [answer.status_code for answer in answers]
        finally:
            await client.aclose()

    with caplog.at_level(logging.WARNING, "frontrow.jobs"):
        assert asyncio.run(ask()) == [200, 429, 429]
    assert outside.counts == {"limit refunds": 2}
    [line] = [record for record in caplog.records if record.name == "frontrow.jobs"]
    assert "client" in line.problem  # type: ignore[attr-defined]


class DeadPermits(MemoryPermits):
    """The store goes down after a permit was taken."""

    def apply(self, request: PermitRequest) -> PermitAnswer:
        if request.op == RELEASE:
            raise StoreDown("the permit store is down")
        return super().apply(request)


async def test_a_permit_that_cannot_be_released_is_counted(outside: FailureBook) -> None:
    with ConcurrencyLimiter(2, name="uploads", store=DeadPermits(ManualClock())) as limiter:
        permit = limiter.try_acquire("fan")
        assert permit is not None
        await permit.arelease()
        assert failures_here().counts == {"permit releases": 1}
        permit = limiter.try_acquire("fan")
        assert permit is not None
        await asyncio.to_thread(permit.release)
        assert outside.counts == {"permit releases": 1}


class DyingSlots:
    """Reserves in the first slot, refuses in the second, and then does not answer."""

    tag_parts = None

    def decide(self, request: StoreRequest) -> Any:
        if request.op != RESERVE:
            raise StoreDown("the node is down")
        is_first = request.slots == (0,)
        return ReserveResult(StoreResult(Decision(is_first, "a" if is_first else "b", 1, 0, 1, 1)), 1)

    async def adecide(self, request: StoreRequest) -> Any:
        return self.decide(request)

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""


async def test_units_that_a_hash_slot_does_not_take_back_are_counted(outside: FailureBook) -> None:
    quota = Quota.parse("1/minute")
    store = HashSlotStore(DyingSlots(), [QuotaSlot(Rule(name, quota), "", quota) for name in "ab"])
    request = StoreRequest((0, 1), ("{a}", "{b}"))
    assert not (await store.adecide(request)).decision.allowed
    assert failures_here().counts == {"limit refunds": 1}
    assert not (await asyncio.to_thread(store.decide, request)).decision.allowed
    assert outside.counts == {"limit refunds": 1}


def suppressed() -> set[tuple[str, str]]:
    """What `suppress` swallows in the packages: file and error."""
    found = set()
    for path in sorted(PACKAGES.rglob("src/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("suppress", "contextlib.suppress"):
                found |= {(path.name, ast.unparse(error).rpartition(".")[2]) for error in node.args}
    return found


def test_no_error_of_ours_is_suppressed() -> None:
    """Of a store, of a setting, or any: whoever swallows one notes a failure instead."""
    found = suppressed()
    assert ("redis_blocking.py", "OSError") in found, "the search finds what there is: a socket that is closed"
    assert not {(file, error) for file, error in found if error in OURS}
