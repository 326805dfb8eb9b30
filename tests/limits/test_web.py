"""The HTTP contract over every door, and a canary for each thing it must catch."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from frontrow.core.clock import ManualClock
from frontrow.limits.http import asgi
from tests.limits import web_contract
from tests.limits.web_contract import CONTRACT, rule
from tests.limits.web_doors import DOORS, Door, asgi_door, starlette_app


@pytest.fixture
def opened() -> Iterator[Callable[[Callable[..., Door]], Callable[..., Door]]]:
    """Makes doors of a kind and closes them all in the end."""
    doors: list[Door] = []

    def of(kind: Callable[..., Door]) -> Callable[..., Door]:
        def make(**options: Any) -> Door:
            doors.append(kind(**options))
            return doors[-1]

        return make

    yield of
    for door in doors:
        door.close()


@pytest.mark.parametrize("kind", DOORS)
@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_the_web_contract_holds(check, kind, opened):
    check(opened(DOORS[kind]))


class ForgetsFields(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        async def bare(message):
            if message["type"] == "http.response.start" and message["status"] == 429:
                message["headers"] = [field for field in message["headers"] if b"ratelimit" not in field[0]]
            await send(message)

        await super().__call__(scope, receive, bare)


class BelievesEverybody(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        forwarded = dict(scope["headers"])[b"x-forwarded-for"].split(b",")[0].strip()
        await super().__call__({**scope, "client": (forwarded.decode(), 1), "headers": []}, receive, send)


class RoutesOnTheRawPath(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        if scope["raw_path"] not in (b"/events/1/holds", b"/events/2/holds"):
            return await self.app(scope, receive, send)
        await super().__call__(scope, receive, send)


class SkipsTheNameless(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        if not dict(scope["headers"]).get(b"x-user", b"").strip():
            return await self.app(scope, receive, send)
        await super().__call__(scope, receive, send)


CANARIES = [
    (ForgetsFields, "l12_every_answer_carries_the_fields"),
    (BelievesEverybody, "l2_addresses_cannot_be_forged_or_rotated"),
    (RoutesOnTheRawPath, "l13_rules_match_method_and_path_however_it_is_spelt"),
    (
        SkipsTheNameless,
        "l15_a_missing_or_empty_client_id_is_an_error_or_counts_by_address_and_is_never_skipped",
    ),
]


@pytest.mark.parametrize(("broken", "check"), CANARIES, ids=[broken.__name__ for broken, _ in CANARIES])
def test_the_contract_catches_a_broken_middleware(broken, check, opened):
    with pytest.raises(AssertionError):
        getattr(web_contract, check)(opened(lambda **options: asgi_door(starlette_app, broken, **options)))


def test_the_applications_own_header_list_is_never_changed(opened):
    """A bare application may send the same message object every time."""
    shared = {"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]}

    async def app(scope, receive, send):
        await send(shared)
        await send({"type": "http.response.body", "body": b"ok"})

    door = opened(lambda **options: asgi_door(lambda calls: app, **options))(rules="3/minute", clock=ManualClock())
    assert [len(door.ask().headers) for _ in range(3)] == [6, 6, 6]
    assert shared["headers"] == [(b"x-own", b"1")]


def test_l1_a_leaky_queue_delays_the_request_instead_of_refusing_it(opened, monkeypatch):
    """L1: the shaper, as middleware."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asgi.asyncio, "sleep", sleep)
    rules = [rule("shape", "10/second", "ip", algorithm="leaky_queue")]
    door = opened(DOORS["starlette"])(rules=rules, clock=ManualClock())
    assert [door.ask().status for _ in range(4)] == [200] * 4
    assert slept == [0.1, 0.2, 0.3]
