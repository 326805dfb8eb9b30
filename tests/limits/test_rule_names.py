"""Which rules share counts in one Redis: those of one name, and no others."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.decorators import limited

Open = Callable[..., Limiter]


@pytest.fixture
def open_limiter(redis_url: str) -> Iterator[Open]:
    with ExitStack() as stack:
        yield lambda rules, **more: stack.enter_context(Limiter(rules, store=redis_url, deadline_s=5.0, **more))


@pytest.mark.parametrize("other", ["5/hour", "5/minute", Quota.parse("100/minute", algorithm="token_bucket", burst=7)])
def test_two_limiters_without_a_name_share_only_if_they_are_equal(open_limiter: Open, other: str | Quota) -> None:
    first, twin, second = open_limiter("100/minute"), open_limiter("100/minute"), open_limiter(other)
    for _ in range(50):
        first.check("fan")
    untouched = second.check("fan")
    assert untouched.remaining == untouched.limit - 1
    assert twin.check("fan").remaining == 49, "the same limit on another server"


def test_middlewares_without_rule_names_do_not_share(redis_url: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    one, two = (RateLimitMiddleware(app, quota, store=redis_url, deadline_s=5.0) for quota in ("100/hour", "5/hour"))
    for _ in range(10):
        one.limits._limiter.check("203.0.113.9")
    assert two.limits._limiter.check("203.0.113.9").remaining == 4
    for middleware in (one, two):
        middleware.limits.close()


def test_a_tier_is_not_the_rule_of_that_name(open_limiter: Open) -> None:
    quota = Quota.parse("10/minute")
    tiered = open_limiter([Rule("api", quota, tiers={"vip": quota}, tier_of=lambda key: "vip")])
    named = open_limiter([Rule("api.vip", quota)])
    strange = open_limiter([Rule("api", quota, tiers={"v|p": quota}, tier_of=lambda key: "v|p")])
    assert [each.check("fan").remaining for each in (tiered, named, strange)] == [9, 9, 9]


def test_prefixes_keep_applications_apart(open_limiter: Open) -> None:
    rules = [Rule("api", Quota.parse("10/minute"))]
    shop, mail = open_limiter(rules, prefix="shop"), open_limiter(rules, prefix="mail")
    assert [each.check("fan").remaining for each in (shop, mail, shop)] == [9, 9, 8]


class Mail:
    """Has a method of the same name as `Phone`."""

    @staticmethod
    def send() -> str:
        return "mail"


class Phone:
    @staticmethod
    def send() -> str:
        return "phone"


def test_functions_of_one_name_count_apart(redis_url: str) -> None:
    options: dict[str, Any] = {"store": redis_url, "deadline_s": 5.0}
    by_mail, by_phone = (limited("1/minute", **options)(each.send) for each in (Mail, Phone))
    assert (by_mail(), by_phone()) == ("mail", "phone")

    @limited("1/minute", **options)
    def send() -> str:
        return "first"

    first = send

    @limited("1/minute", **options)
    def send() -> str:
        return "second"

    assert (first(), send()) == ("first", "second")
    for function in (by_mail, by_phone, first, send):
        assert not function.limiter.peek("everybody").allowed  # type: ignore[attr-defined]
        function.limiter.close()  # type: ignore[attr-defined]


def test_functions_that_give_one_name_count_together(redis_url: str) -> None:
    both = [limited("5/minute", name="send", store=redis_url, deadline_s=5.0)(each.send) for each in (Mail, Phone)]
    for function in both:
        function()
    assert both[0].limiter.peek("everybody").remaining == 3  # type: ignore[attr-defined]
    for function in both:
        function.limiter.close()  # type: ignore[attr-defined]


def test_a_decorated_function_made_twice_is_one_limit(redis_url: str) -> None:
    """As on two servers, or in an application factory that runs twice."""

    def make() -> Any:
        @limited("5/minute", store=redis_url, deadline_s=5.0)
        def send() -> None: ...

        return send

    made = [make(), make()]
    for send in made:
        send()
    assert made[0].limiter.peek("everybody").remaining == 3
    for send in made:
        send.limiter.close()
