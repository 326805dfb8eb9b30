"""Who a request is from: async `identify` and `tier_of`, objects without a text, and rules that can be pickled."""

import asyncio
import copy
import io
import pickle
from dataclasses import asdict

import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits import InvalidKey, InvalidQuota, Limiter, Quota, Rule
from frontrow.limits.http import asgi, wsgi
from frontrow.limits.http.body_parts import BODY, BodyPart, read_asgi_body, read_wsgi_body
from frontrow.limits.rules import RequestRule
from frontrow.testing.clock import ManualClock
from tests.contracts.rate_limit_middleware import rule
from tests.limits.limited_apps import call_asgi, flask_app, starlette_app

TIERED = rule("fans", "1/minute", "user", tiers={"vip": Quota.parse("2/minute", algorithm="sliding_log")})


async def read_user(request):
    return dict(request["headers"]).get(b"x-user", b"").decode()


async def find_tier(key):
    return "vip" if key["user"] == "42" else None


class ReadUser:
    async def __call__(self, request):
        return await read_user(request)


async def ask(app, user):
    return (await call_asgi(app, "GET", "/", {"x-user": user}, "203.0.113.1")).status


@pytest.mark.parametrize("read", [read_user, ReadUser(), lambda request: read_user(request)])
async def test_async_identify_and_tier_of_are_awaited(read):
    """Before, every request was its own client: the coroutine's text with its address in memory."""
    app = asgi.RateLimitMiddleware(
        starlette_app([]), [TIERED], identify={"user": read}, tier_of=find_tier, clock=ManualClock()
    )
    assert [await ask(app, "7"), await ask(app, "7"), await ask(app, "")] == [200, 429, 400]
    assert [await ask(app, "42") for _ in range(3)] == [200, 200, 429]


async def test_async_exemptions_and_refusals_are_awaited():
    async def is_exempt(scope):
        return await read_user(scope) == "staff"

    async def refuse(scope, decision):
        return {"who": await read_user(scope)}

    app = asgi.RateLimitMiddleware(starlette_app([]), "1/day", exempt_if=is_exempt, on_refused=refuse)
    assert [await ask(app, user) for user in ("staff", "staff", "fan", "fan")] == [200, 200, 200, 429]
    refused = await call_asgi(app, "GET", "/", {"x-user": "fan"}, "203.0.113.1")
    assert refused.body == b'{"who": "fan"}'


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"identify": {"user": read_user}}, "identify: user is async"),
        ({"identify": {"user": ReadUser()}}, "identify: user is async"),
        ({"tier_of": find_tier}, "tier_of is async"),
        ({"exempt_if": read_user}, "exempt_if is async"),
        ({"on_refused": read_user}, "on_refused is async"),
    ],
)
def test_what_is_async_is_refused_at_once_where_nothing_waits_for_it(options, expected):
    with pytest.raises(ConfigError, match=expected):
        wsgi.RateLimitMiddleware(flask_app([]), [TIERED], **{"tier_of": lambda key: None, **options})


def test_a_coroutine_that_a_plain_function_returned_is_an_error_under_wsgi():
    app = flask_app([])
    app.testing = True
    app.wsgi_app = wsgi.RateLimitMiddleware(
        app.wsgi_app, [rule("fans", "1/minute", "user")], identify={"user": lambda request: read_user(request)}
    )
    with pytest.raises(ConfigError, match="nothing waits for it here"):
        app.test_client().get("/")


def test_a_limiter_refuses_an_async_tier_of():
    tiers = {"vip": Quota.parse("2/minute")}
    with pytest.raises(InvalidQuota, match="rule fans: tier_of is async"):
        Limiter(Rule("fans", Quota.parse("1/minute"), ("user",), tiers, tier_of=find_tier))
    limiter = Limiter(Rule("fans", Quota.parse("1/minute"), ("user",), tiers, tier_of=lambda key: find_tier(key)))
    with pytest.raises(InvalidKey, match="tier_of must return a tier's name or None"):
        limiter.check({"user": "42"})


@pytest.mark.parametrize("nothing", [object(), ["x"], {"id": 1}, len])
async def test_an_object_without_a_text_of_its_own_is_an_error_and_not_a_new_client(nothing):
    app = asgi.RateLimitMiddleware(
        starlette_app([]), [rule("fans", "1/minute", "user")], identify={"user": lambda scope: nothing}
    )
    with pytest.raises(InvalidKey, match="user must be a text, a whole number or an object with __str__"):
        await ask(app, "7")


async def test_a_function_can_read_its_part_from_the_body():
    rules = [rule("card", "1/minute", "card")]
    app = asgi.RateLimitMiddleware(starlette_app([]), rules, identify={"card": BodyPart(lambda body: body[:4].hex())})
    answers = [await call_asgi(app, "POST", "/", {}, "203.0.113.1", body=b"4242 1234 %d" % n) for n in range(2)]
    assert [answer.status for answer in answers] == [200, 429]
    assert answers[0].body == b"4242 1234 0"


def test_request_rules_can_be_pickled_copied_and_listed():
    whole = RequestRule(
        "fans", Quota.parse("1/minute"), ("user",), tiers={"vip": Quota.parse("2/minute")}, statuses=(401,)
    )
    for same in (pickle.loads(pickle.dumps(whole)), copy.copy(whole), copy.deepcopy(whole)):
        assert same == whole
    assert asdict(whole)["tiers"]["vip"]["limit"] == 2


def test_wrong_statuses_are_an_error():
    with pytest.raises(ConfigError, match=r"statuses must be numbers from 100 to 599, like \(401, 403\)"):
        RequestRule("fans", Quota.parse("1/minute"), statuses=(1,))


async def enter_at_once(middleware):
    """50 sign-ins that all fail, all inside at the same time: how many reached the application, and the answers."""
    entered, started = 0, asyncio.Event()

    async def sign_in(scope, receive, send):
        nonlocal entered
        entered += 1
        await started.wait()
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = middleware(sign_in, [rule("tries", "5/minute", "ip", statuses=(401,))], clock=ManualClock())
    calls = [asyncio.create_task(call_asgi(app, "POST", "/", {}, "203.0.113.1")) for _ in range(50)]
    for _ in range(20):  # every call gets as far as it can
        await asyncio.sleep(0)
    decided = entered
    started.set()
    return decided, [answer.status for answer in await asyncio.gather(*calls)]


async def test_of_50_guesses_at_once_only_the_quota_reaches_the_application():
    entered, told = await enter_at_once(asgi.RateLimitMiddleware)
    assert (entered, told.count(401), told.count(429)) == (5, 5, 45)


async def test_who_hangs_up_before_the_answer_gains_no_free_guess():
    async def sign_in(scope, receive, send):
        await asyncio.Event().wait()

    app = asgi.RateLimitMiddleware(sign_in, [rule("tries", "2/minute", "ip", statuses=(401,))], clock=ManualClock())
    for _ in range(2):
        call = asyncio.create_task(call_asgi(app, "POST", "/", {}, "203.0.113.1"))
        for _ in range(20):  # it gets as far as it can
            await asyncio.sleep(0)
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert (await call_asgi(app, "POST", "/", {}, "203.0.113.1")).status == 429


async def test_a_middleware_that_charges_after_the_response_lets_all_guesses_through():
    """The canary: charging only when the response is known is a check and an act with everybody between them."""

    class ChargesAfterwards(asgi.RateLimitMiddleware):
        async def _serve(self, route, scope, receive, send):
            await self.app(scope, receive, send)
            await self.limits.adecide(route, {"ip": scope["client"][0]}, "POST")

    entered, _ = await enter_at_once(ChargesAfterwards)
    assert entered == 50


@pytest.mark.parametrize("body", [b"", b"email=ann", b"email=ann&n=" + b"x" * 200])
def test_a_body_without_a_length_is_read_to_its_end_and_replayed(body):
    """As servers pass chunked bodies: `wsgi.input` ends by itself."""
    environ = {"wsgi.input": io.BytesIO(body), "wsgi.input_terminated": True}
    read_wsgi_body(environ, 100)
    assert environ.get(BODY) == (body if len(body) <= 100 else None)
    assert environ["wsgi.input"].read() == body
    unending = {"wsgi.input": io.BytesIO(b"email=ann")}
    read_wsgi_body(unending, 100)
    assert (unending.get(BODY), unending["wsgi.input"].tell()) == (None, 0), "nobody says where it ends"


async def test_a_body_in_endless_pieces_is_not_read_for_ever():
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": True}

    scope = {}
    replay = await read_asgi_body(scope, receive, 100)
    assert BODY not in scope
    assert (await replay())["more_body"]
