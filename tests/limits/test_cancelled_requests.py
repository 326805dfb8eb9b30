"""A client hangs up, at any await of a request: every door of HTTP and of outgoing calls gives back what it began to
give back, once. What a request was charged before stays charged, so nobody gets free tries by hanging up."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from frontrow.core.failures import failures_here
from frontrow.limits import ConcurrencyLimiter, Limiter, Quota, Rule, Throttled
from frontrow.limits.adaptive.asgi import AdaptiveLimitMiddleware
from frontrow.limits.adaptive.limit import AdaptiveLimit
from frontrow.limits.http import open_charges, wsgi
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.outgoing.httpx_transport import AsyncPacedTransport
from frontrow.limits.quota import StoreDown
from frontrow.limits.rules import RequestRule
from frontrow.limits.stores.from_url import open_memory_store
from frontrow.limits.stores.permits import RELEASE, MemoryPermits, PermitAnswer, PermitRequest
from frontrow.limits.stores.protocol import CHECK, REFUND, QuotaSlot, StoreRequest, StoreResult
from frontrow.testing.clock import ManualClock
from tests.limits.cancellation import SlowPermits, SlowStore, cancel_at_every_await, others_ended
from tests.limits.limited_apps import call_asgi
from tests.support.eventually import eventually

MANY, ONE = Quota.parse("1000/hour sliding_log"), Quota.parse("1/hour sliding_log")
MAY_BE_CHARGED = ([0, 0], [1, 0], [1, 1])  # the outer limits, from the first to the second


class CountedStore(SlowStore):
    """A slow store of one rule. It knows what is charged, and how many refunds were begun and made."""

    def __init__(self, name: str, quota: Quota = MANY, clock: ManualClock | None = None) -> None:
        super().__init__(open_memory_store([QuotaSlot(Rule(name, quota), "", quota)], clock or ManualClock()))
        self.forget()

    def forget(self) -> None:
        self.charged = self.begun = self.refunded = 0

    def decide(self, request: StoreRequest) -> StoreResult:
        result = self._inner.decide(request)
        if request.op == REFUND:
            self.charged -= request.cost
            self.refunded += 1
        elif request.op == CHECK and result.decision.allowed:
            self.charged += request.cost
        return result

    async def adecide(self, request: StoreRequest) -> StoreResult:
        self.begun += request.op == REFUND
        await asyncio.sleep(0)
        result = self.decide(request)
        await asyncio.sleep(0)
        return result


class Door:
    """An ASGI application that two limits stand in front of, and a third inside them that refuses all but the first."""

    def __init__(self) -> None:
        self.first, self.second = CountedStore("first"), CountedStore("second")
        self.inside = CountedStore("inside", ONE)
        self.outer = [self.first, self.second]
        self.app: Any = None

    async def ask(self) -> int:
        return (await call_asgi(self.app, "GET", "/codes", {"host": "shop.test"}, peer="203.0.113.9")).status


def fastapi_dependencies() -> Door:
    from fastapi import Depends, FastAPI

    from frontrow.limits.http.fastapi import RateLimits

    door = Door()
    second, inside = RateLimits(door.second, clock=ManualClock()), RateLimits(door.inside, clock=ManualClock())
    app = FastAPI(dependencies=[Depends(second.limit(MANY, name="second"))])
    app.add_middleware(RateLimitMiddleware, rules=RequestRule("first", MANY), store=door.first, clock=ManualClock())

    @app.get("/codes", dependencies=[Depends(inside.limit(ONE, name="inside"))])
    async def codes() -> str:
        return "served"

    door.app = app
    return door


def fastapi_decorators() -> Door:
    from fastapi import FastAPI

    from frontrow.limits.http.fastapi import RateLimits

    door, app = Door(), FastAPI()
    second, inside = RateLimits(door.second, clock=ManualClock()), RateLimits(door.inside, clock=ManualClock())
    app.add_middleware(RateLimitMiddleware, rules=RequestRule("first", MANY), store=door.first, clock=ManualClock())

    @app.get("/codes")
    @second.limited(MANY, name="second")
    @inside.limited(ONE, name="inside")
    async def codes() -> str:
        return "served"

    door.app = app
    return door


def starlette() -> Door:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import RateLimits

    async def serve(request: Any) -> Any:
        return PlainTextResponse("served")

    door = Door()
    second, inside = RateLimits(door.second, clock=ManualClock()), RateLimits(door.inside, clock=ManualClock())
    limited = second.limited(MANY, name="second")(inside.limited(ONE, name="inside")(serve))
    rule = RequestRule("first", MANY)
    outside = Middleware(RateLimitMiddleware, rules=rule, store=door.first, clock=ManualClock())
    door.app = Starlette(routes=[Route("/codes", limited)], middleware=[outside])
    return door


def litestar() -> Door:
    from litestar import Litestar, get

    from frontrow.limits.http.litestar import RateLimits, middleware

    door = Door()
    second, inside = RateLimits(door.second, clock=ManualClock()), RateLimits(door.inside, clock=ManualClock())

    @get("/codes", guards=[inside.limit(ONE, name="inside")])
    async def codes() -> str:
        return "served"

    outside = middleware(RequestRule("first", MANY), door.first, clock=ManualClock())
    guards: Any = [second.limit(MANY, name="second")]
    door.app = Litestar([codes], guards=guards, middleware=[outside], openapi_config=None)
    return door


def middlewares(wrap: Callable[[Any], Any] = lambda app: app) -> Door:
    """Rules that do not count errors of the server: the general path of the middleware. `wrap` is inside the outer."""
    door = Door()
    counts = {"statuses": lambda status: status < 500}
    app: Any = RateLimitMiddleware(serve, RequestRule("inside", ONE, **counts), store=door.inside, clock=ManualClock())
    app = wrap(app)
    for name, store in (("second", door.second), ("first", door.first)):
        app = RateLimitMiddleware(app, RequestRule(name, MANY, **counts), store=store, clock=ManualClock())
    door.app = app
    return door


async def serve(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


DOORS = [fastapi_dependencies, fastapi_decorators, starlette, litestar, middlewares]


async def check_every_hang_up(door: Door, attempt: Callable[[], Awaitable[Any]]) -> None:
    """What began to be given back was given back to every limit that was charged before, and once."""
    rounds = gave_back = 0
    async for k in cancel_at_every_await(attempt):
        begun, charged = sum(store.begun for store in door.outer), [store.charged for store in door.outer]
        assert begun == sum(store.refunded for store in door.outer), f"a refund was lost at await {k}"
        assert charged == [0, 0] if begun else charged in MAY_BE_CHARGED, f"{charged} after await {k}"
        rounds, gave_back = rounds + 1, gave_back + (begun > 0)
        for store in door.outer:
            store.forget()
    assert rounds > gave_back > 1, "it was cancelled before, and while it gave back"


async def use_up(door: Door) -> None:
    """The limit inside is used up, as the two outside are not."""
    assert [await door.ask() for _ in range(2)] == [200, 429]
    assert [store.charged for store in door.outer] == [1, 1], "the refusal cost nothing"
    for store in door.outer:
        store.forget()


@pytest.mark.parametrize("make", DOORS, ids=lambda make: make.__name__)
async def test_a_refusal_gives_back_all_although_the_client_hangs_up(make: Callable[[], Door]) -> None:
    door = make()
    await use_up(door)
    await check_every_hang_up(door, door.ask)


async def test_a_hang_up_that_an_application_makes_an_error_of_gives_back_nothing_twice() -> None:
    """The outer limits would give back what an error of the server does not count, which the inner one is doing."""

    def turn_cancellation_into_error(app: Any) -> Any:
        async def call(scope: Any, receive: Any, send: Any) -> None:
            try:
                await app(scope, receive, send)
            except asyncio.CancelledError:  # as asyncio.timeout does
                raise TimeoutError from None

        return call

    door = middlewares(turn_cancellation_into_error)
    await use_up(door)

    async def attempt() -> None:
        with contextlib.suppress(TimeoutError):
            await door.ask()

    await check_every_hang_up(door, attempt)


@pytest.mark.parametrize("how", ["answers", "raises"])
async def test_what_a_response_does_not_count_is_given_back_although_the_client_hangs_up(how: str) -> None:
    """The status is known when the refund begins: from then on it is not taken back."""

    async def fail(scope: Any, receive: Any, send: Any) -> None:
        if how == "raises":
            raise ZeroDivisionError
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    store = CountedStore("tries")
    rule = RequestRule("tries", MANY, statuses=(401,))
    app = RateLimitMiddleware(fail, rule, store=store, clock=ManualClock())
    gave_back = 0

    async def attempt() -> None:
        with contextlib.suppress(ZeroDivisionError):
            await call_asgi(app, "GET", "/", {"host": "shop.test"}, peer="203.0.113.9")

    async for k in cancel_at_every_await(attempt):
        assert store.begun == store.refunded <= 1, f"a refund was lost at await {k}"
        assert store.charged in ((0,) if store.begun else (0, 1)), f"{store.charged} after await {k}"
        gave_back += store.begun
        store.forget()
    assert gave_back > 1


async def test_a_request_whose_client_hangs_up_before_the_answer_counts() -> None:
    """Whoever guesses a password and hangs up has guessed."""

    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    store = CountedStore("tries")
    rule = RequestRule("tries", MANY, statuses=(401,))
    app = RateLimitMiddleware(never, rule, store=store, clock=ManualClock())
    asking = asyncio.create_task(call_asgi(app, "GET", "/", {"host": "shop.test"}, peer="203.0.113.9"))
    await eventually(lambda: store.charged == 1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert store.charged == 1


# -- outgoing --------------------------------------------------------------------------------------------------------


async def test_an_outgoing_request_gives_its_turn_back_once_although_it_is_cancelled() -> None:
    """The server asks for a pause while the request stands in line: its unit goes back and is taken again."""
    clock = ManualClock()
    store = CountedStore("sent", clock=clock)
    sent = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal sent
        sent += 1
        await asyncio.sleep(0)
        return httpx.Response(200)

    limiter = Limiter(Rule("sent", MANY), store=store, clock=clock)
    paced = AsyncPacedTransport(limiter, transport=httpx.MockTransport(answer), clock=clock)

    def pause_once(request: StoreRequest) -> StoreResult:
        result = CountedStore.decide(store, request)
        if request.op == CHECK and store.charged == 1 and not store.refunded:
            paced.pacer._pause("shop.test", 3.0)  # as the 429 of another request does
        return result

    store.decide = pause_once  # type: ignore[method-assign]
    gave_back = 0
    async with httpx.AsyncClient(transport=paced) as client:
        async for k in cancel_at_every_await(lambda: client.get("http://shop.test/")):
            assert store.begun == store.refunded, f"a refund was lost at await {k}"
            assert sent <= store.charged <= 1, f"{store.charged} for {sent} sent at await {k}"
            gave_back, sent = gave_back + store.begun, 0
            store.forget()
            clock.advance(10)
    assert gave_back > 1


async def test_a_place_in_line_that_comes_too_late_is_given_back_although_its_caller_is_cancelled() -> None:
    clock = ManualClock()
    quota = Quota.parse("1/hour leaky_queue", burst=1000)
    store = CountedStore("queue", quota, clock)
    limiter = Limiter(Rule("queue", quota), store=store, clock=clock)
    limiter.check("fan")
    store.forget()

    async def come_too_late() -> None:
        with pytest.raises(Throttled):
            await limiter.aacquire("fan", timeout_s=1)

    gave_back = 0
    async for k in cancel_at_every_await(come_too_late):
        assert store.begun == store.refunded, f"a refund was lost at await {k}"
        gave_back += store.begun
        store.forget()
    assert gave_back > 1


# -- permits and slots -----------------------------------------------------------------------------------------------


class WatchedPermits(SlowPermits):
    """Slow permits that know how many releases were made."""

    releases = 0

    async def aapply(self, request: PermitRequest) -> PermitAnswer:
        answer = await super().aapply(request)
        self.releases += request.op == RELEASE
        return answer


async def test_a_release_that_is_cancelled_still_wakes_who_waits() -> None:
    """The next in line had to find the free permit by itself, by asking again."""
    permits = WatchedPermits(MemoryPermits(ManualClock()))
    async with ConcurrencyLimiter(1, name="uploads", store=permits, clock=ManualClock()) as limiter:
        woken: list[str] = []
        limiter._waiters.wake_next = lambda request: woken.append(request.permit)  # type: ignore[method-assign]

        async def hold() -> None:
            permit = await limiter.atry_acquire("fan")
            if permit is not None:
                await permit.arelease()

        async for k in cancel_at_every_await(hold):
            assert len(woken) == permits.releases, f"nobody was woken after await {k}"


async def test_an_adaptive_middleware_has_nothing_in_flight_after_a_cancellation() -> None:
    limit = AdaptiveLimit("asgi")

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0)
        await serve(scope, receive, send)
        await asyncio.sleep(0)

    app = AdaptiveLimitMiddleware(slow, limit)
    async for k in cancel_at_every_await(lambda: call_asgi(app, "GET", "/", {"host": "shop.test"})):
        assert (limit.in_flight, limit.waiting) == (0, 0), f"held after await {k}"


# -- WSGI: a response that is never read to its end -------------------------------------------------------------------


def ask_wsgi(app: Any, read: Callable[[Any], Any]) -> Any:
    """One request, of whose response `read` takes what it wants before the server closes it."""
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "REMOTE_ADDR": "203.0.113.9"}
    body = app(environ, lambda status, headers, *error: None)
    try:
        return read(body)
    finally:
        getattr(body, "close", lambda: None)()


def limited_wsgi(serve: Any) -> tuple[Any, Callable[[], int]]:
    clock = ManualClock()
    rule = RequestRule("tries", MANY, [], statuses=(401,))
    app = wsgi.RateLimitMiddleware(serve, rule, clock=clock)
    limiter: Any = app.limits._limiter
    return app, lambda: int(MANY.limit - limiter.peek({}).remaining)


def test_a_lazy_wsgi_application_that_fails_is_given_back() -> None:
    """A generator calls `start_response` when the server asks for the first piece, and may fail instead."""

    def fail(environ: Any, start_response: Any) -> Any:
        raise ZeroDivisionError
        yield b""

    app, charged = limited_wsgi(fail)
    with pytest.raises(ZeroDivisionError):
        ask_wsgi(app, list)
    assert charged() == 0, "the server answers with 500, which does not count"


def test_a_wsgi_response_that_is_closed_early_is_settled_once_and_closes_the_application() -> None:
    ended = []

    def stream(environ: Any, start_response: Any) -> Any:
        try:
            start_response("200 OK", [])
            yield b"one"
            yield b"two"
        finally:
            ended.append("stream")

    app, charged = limited_wsgi(stream)
    assert ask_wsgi(app, lambda body: next(iter(body))) == b"one"
    assert (charged(), ended) == (0, ["stream"])
    ask_wsgi(app, lambda body: None)
    assert charged() == 1, "closed before it said anything: it counts, as a client that hangs up does"


# -- canaries --------------------------------------------------------------------------------------------------------


async def test_canary_a_refund_that_is_lost_with_its_client_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def one_by_one(begun: Any) -> None:
        for charge, told, names in begun:
            told.replace(await charge.limits.agive_back(charge, names))

    async def carry_out(work: Any, job: str) -> Any:
        return await work

    monkeypatch.setattr(open_charges, "_areturn_all", one_by_one)
    monkeypatch.setattr(open_charges, "carry_out", carry_out)
    door = middlewares()
    await use_up(door)
    with pytest.raises(AssertionError, match="lost at await"):
        await check_every_hang_up(door, door.ask)
    await others_ended()


async def test_a_refund_that_fails_when_nobody_waits_is_heard_of() -> None:
    """The client is gone and the store goes down: the failure is counted and logged."""
    door = fastapi_dependencies()
    await use_up(door)
    down = asyncio.Event()

    async def adecide(request: StoreRequest) -> StoreResult:
        if request.op == CHECK:
            return await CountedStore.adecide(door.second, request)
        down.set()
        await asyncio.sleep(0)
        raise StoreDown("the store is down")

    door.second.adecide = adecide  # type: ignore[method-assign]
    asking = asyncio.create_task(door.ask())
    await down.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await eventually(lambda: failures_here().counts.get("limit refunds") == 1)
    assert door.first.charged == 0, "the other store has its unit back"
