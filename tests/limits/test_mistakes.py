"""What people write by mistake is said in one sentence: what is wrong, and what would be right."""

import asyncio
import subprocess
import sys
from typing import Any

import httpx
import pytest
from flask import Flask

from frontrow.core.errors import ConfigError
from frontrow.limits import InvalidCost, InvalidKey, InvalidQuota, LeasedLimiter, Limiter, Quota, Rule, Tiers
from frontrow.limits.http import django, fastapi, flask
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.rules import RequestRule
from frontrow.limits.stores.from_url import CompiledStore

KERNELS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "pure"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1.5/s", "'1.5' is no whole number; write 3/2s"),
        ("0.1/minute", "'0.1' is no whole number; write 1/10minute"),
        ("10/1.5s", "'1.5' is no whole number; write 20/3s"),
        ("1e3/s", "'1e3' is no whole number; write 1000/s"),
        ("1.000/hour", "'1.000' is no whole number; write 1/hour (1000/hour for thousands)"),
        ("1,000/hour", "'1,000' has a separator inside; write 1000 or 1_000"),
        ("5/s; 10,000,000/day", "'10,000,000' has a separator inside; write 10000000 or 10_000_000"),
        ("10 000/hour", "'10 000' has a separator inside; write 10000 or 10_000"),
        ("10/s gcra", "'gcra' is called token_bucket here; write token_bucket"),
        ("10/s moving-window", "'moving-window' is called sliding_log here"),
        ("10/s token-bucket", "'token-bucket' is neither a burst nor an algorithm; write token_bucket"),
        ("10/s burst 5 leakybucket", "'leakybucket' is neither a burst nor an algorithm; write leaky_bucket"),
        ("10/s nonsense", "'nonsense' is neither a burst nor an algorithm; write burst 20 or one of fixed_window,"),
        ("10/s burst", "burst needs a whole number, like burst 20"),
        ("10 per second per user", "'per user' says who is limited, which is the key's part"),
        ("10", "'10' does not say in what time; write a slash and a time, like 10/minute"),
        ("10/", "'10/' does not say in what time"),
        ("10:minute", "does not say in what time; write a slash and a time, like 10/minute"),
        ("ten/s", "'ten' is no number; write one, like 10/s"),
        ("", "'' is no quota; write a number, a slash and a time"),
        (None, "None is no quota; write a number, a slash and a time"),
    ],
)
def test_a_text_that_is_no_quota_says_which_part_is_wrong(text: Any, said: str) -> None:
    for read in (Quota.parse_all, Quota.parse) if ";" not in str(text) else (Quota.parse_all,):
        with pytest.raises(InvalidQuota) as caught:
            read(text)
        assert said in caught.value.message


def test_a_quota_that_a_message_proposes_is_one() -> None:
    assert str(Quota.parse("3/2s")) == "3/2s sliding_counter"
    assert Quota.parse_all("5/s,100/h")[1].limit == 100, "a comma still separates quotas"
    assert Quota.parse_all("5/s, 1_000/h")[1].limit == 1000


@pytest.mark.parametrize("field", ["key", "methods", "paths", "except_paths"])
def test_a_text_for_a_list_of_a_rule_is_not_read_letter_by_letter(field: str) -> None:
    with pytest.raises(ConfigError, match=f"rule 'a': {field} must be a list, like ..POST.., not the text 'POST'"):
        RequestRule("a", "5/minute", **{field: "POST"})


def test_lists_and_single_numbers_of_a_rule() -> None:
    rule = RequestRule("a", "5/minute", ["user"], methods=["POST"], paths=["/holds"], statuses=[401])
    assert (rule.key, rule.methods, rule.paths, rule.statuses) == (("user",), ("POST",), ("/holds",), (401,))
    assert hash(rule.paths), "rules are compared by these"
    with pytest.raises(ConfigError, match=r"statuses must be a list, like \[401\], not 401"):
        RequestRule("a", "5/minute", statuses=401)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["trusted_proxies", "exempt_addresses", "exempt_paths", "exempt_users"])
def test_a_text_for_a_list_of_the_middleware_is_an_error(option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} must be a list, like .'10.0.0.1'., not the text"):
        RateLimitMiddleware(None, "5/minute", **{option: "10.0.0.1"})  # type: ignore[arg-type]


def test_quotas_are_texts_wherever_a_rule_is_written() -> None:
    rule = Rule("a", "5/second burst 9", tiers={"vip": "50/second"}, tier_of=lambda key: "vip")
    assert (rule.quota, rule.tiers["vip"].limit) == (Quota(5, 1_000_000, "token_bucket", 9), 50)
    assert RequestRule("a", "5/second", tiers={"vip": "50/second"}).tiers["vip"].limit == 50
    assert Rule("a", "5/second", per=["user"]).per == ("user",)
    with pytest.raises(InvalidQuota, match=r"rule a: quota: '1\.5/s': '1\.5' is no whole number"):
        Rule("a", "1.5/s")
    with pytest.raises(InvalidQuota, match=r"rule a: tiers\['vip'\]: 'x/s': 'x' is no number"):
        RequestRule("a", "5/s", tiers={"vip": "x/s"})
    with pytest.raises(InvalidQuota, match="rule a: quota must be like .* not 5"):
        Rule("a", 5)  # type: ignore[arg-type]


# -- what was forgotten ------------------------------------------------------------------------------------------------


async def user_id() -> str:
    return "42"


@KERNELS
@pytest.mark.parametrize("wrap", [lambda key: key, lambda key: {"user": key}], ids=["whole", "part"])
def test_a_coroutine_as_key_asks_for_await(wrap: Any, compiled: bool) -> None:
    """Without a warning that it was never awaited: the error says so."""
    limiter = Limiter("5/minute", compiled=compiled)
    with pytest.raises(InvalidKey, match="the coroutine of user_id; write await before it"):
        limiter.check(wrap(user_id()))
    with pytest.raises(InvalidKey, match=r"the function user_id; call it, like user_id\(…\)"):
        limiter.check(wrap(user_id))


def test_a_coroutine_as_cost_asks_for_await() -> None:
    with pytest.raises(InvalidCost, match="the coroutine of user_id; write await before it"):
        Limiter("5/minute").check("a", cost=user_id())  # type: ignore[arg-type]


def test_a_decision_that_was_not_awaited_is_not_true() -> None:
    """`if limiter.acheck(key):` would allow everything. In plain Python it is a coroutine, which is always true."""
    if CompiledStore is None:
        return
    limiter = Limiter("5/minute")
    with pytest.raises(TypeError, match="write: await limiter.acheck"):
        print("allowed" if limiter.acheck("a") else "refused")


@KERNELS
async def test_a_task_of_a_check_can_be_printed(compiled: bool) -> None:
    """Whoever prints a task asks whether its coroutine is true: asyncio itself from Python 3.12 on."""
    limiter = Limiter("5/minute", compiled=compiled)
    task = asyncio.ensure_future(limiter.acheck("a"))
    coroutine = task.get_coro()
    assert "Task pending" in repr(task)
    assert coroutine
    assert (await task).remaining == 4
    assert "Task finished" in repr(task)


def view(request: Any = None) -> str:
    return "served"


def test_forgotten_brackets_of_a_function_decorator() -> None:
    from frontrow.limits.celery_tasks import limited_task
    from frontrow.limits.http.decorators import limited

    with pytest.raises(ConfigError, match="view stands where a quota belongs: limited needs brackets"):
        limited(view)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="limited_task needs brackets"):
        limited_task(view)  # type: ignore[arg-type]


def test_forgotten_brackets_in_fastapi_starlette_and_flask_are_errors_when_the_route_is_made() -> None:
    from fastapi import FastAPI
    from flask import Flask
    from starlette.routing import Route

    from frontrow.limits.http import fastapi, flask, starlette

    forgotten = r'view stands where a quota belongs: limited needs brackets and a quota, like @limited\("5/minute"\)'
    with pytest.raises(ConfigError, match=forgotten):
        FastAPI().get("/")(fastapi.limited(view))
    with pytest.raises(ConfigError, match=forgotten):
        Route("/", starlette.limited(view))
    with pytest.raises(ConfigError, match=forgotten):
        Flask("shop").get("/")(flask.limited(view))
    with pytest.raises(ConfigError, match="limited needs brackets and a quota"):
        starlette.limited("5/minute")("home")  # type: ignore[type-var]


def test_forgotten_brackets_in_django_are_an_error_at_the_first_request() -> None:
    from django.conf import settings
    from django.http import HttpRequest

    if not settings.configured:
        settings.configure(SECRET_KEY="only for tests", ALLOWED_HOSTS=["*"], USE_TZ=True)
    from frontrow.limits.http.django import limited

    with pytest.raises(ConfigError, match="limited needs brackets and a quota"):
        limited(view)(HttpRequest())


def test_a_function_that_returns_quotas_still_decorates() -> None:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import limited

    @limited(lambda request: "1/minute")
    async def home(request: Any) -> Any:
        return PlainTextResponse("served")

    async def ask() -> list[int]:
        app = Starlette(routes=[Route("/", home)])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            return [(await client.get("/")).status_code for _ in range(2)]

    assert asyncio.run(ask()) == [200, 429]


# -- options ---------------------------------------------------------------------------------------------------------

NOBODY = "redis://127.0.0.1:1/0"


@pytest.mark.parametrize("store", ["memory://", NOBODY])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda store: Limiter("5/s", sotre=store), "a limiter has no option 'sotre'; did you mean 'store'?"),
        (lambda store: Limiter("5/s", store=store, algorithm="gcra"), "a limiter has no option 'algorithm'"),
        (lambda store: Limiter("5/s", store=store, dedline_s=1), "no option 'dedline_s'; did you mean 'deadline_s'?"),
        (lambda store: LeasedLimiter("5/s", store=store, prefx="a"), "no option 'prefx'; did you mean 'prefix'?"),
        (lambda store: RateLimitMiddleware(None, "5/s", store=store, rule="5/s"), "did you mean 'rules'?"),
        (lambda store: flask.RateLimits(store=store, identfy={}), "did you mean 'identify'?"),
        (lambda store: fastapi.RateLimits(store=store, identfy={}), "did you mean 'identify'?"),
    ],
)
def test_a_misspelt_option_is_named_with_the_right_one(store: str, make: Any, said: str) -> None:
    """`Limiter("5/s", sotre=…)` was told what the memory store knows."""
    with pytest.raises(ConfigError) as caught:
        make(store)
    assert said in caught.value.message


def test_a_misspelt_option_beside_a_store_of_ones_own_is_no_secret() -> None:
    own = Limiter("5/s")._store
    with pytest.raises(ConfigError, match="a limiter has no option 'max_key'; did you mean 'max_keys'"):
        Limiter("5/s", store=own, max_key=5)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rule("a", "5/s", shadow="no"),  # type: ignore[arg-type]
        lambda: RequestRule("a", "5/s", shadow="no"),  # type: ignore[arg-type]
        lambda: RateLimitMiddleware(None, "5/s", enabled="false"),  # type: ignore[arg-type]
        lambda: flask.RateLimits(enabled=None),  # type: ignore[typeddict-item]
    ],
)
def test_a_text_from_the_environment_is_no_true_or_false(make: Any) -> None:
    """`enabled=os.environ.get(…)` switched limits on with "false", and off without the variable."""
    with pytest.raises(ConfigError, match=r"(shadow|enabled) must be True or False, not ('no'|'false'|None)"):
        make()


def test_the_clock_is_a_function() -> None:
    with pytest.raises(ConfigError, match="clock must be a function that returns microseconds since 1970, not 3"):
        Limiter("5/s", clock=3)  # type: ignore[arg-type]


def test_members_of_tiers_are_a_mapping() -> None:
    with pytest.raises(ConfigError, match="members must be like {'user:42': 'gold'}, not 'gold'"):
        Tiers("gold")  # type: ignore[arg-type]


# -- limits of routes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quota", [2, ["5/minute", "100/hour"], None])
@pytest.mark.parametrize("limited", [flask.limited, fastapi.limited, fastapi.limit, django.limited])
def test_what_is_no_quota_of_a_route_is_named(limited: Any, quota: Any) -> None:
    with pytest.raises(ConfigError, match='a limit is like "5/minute", or a function that returns a quota; not '):
        limited(quota)


def test_rules_in_the_place_of_the_flask_application_are_named() -> None:
    with pytest.raises(ConfigError, match=r"like RateLimits\(app, rules=\"100/minute\"\), not '100/minute'"):
        flask.RateLimits("100/minute")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "missing"),
    [
        ("header:x-tenant", "header x-tenant"),
        ("post:username", "field username"),
        ("json:user.email", "field user.email"),
    ],
)
def test_a_client_is_told_which_header_or_field_is_missing(key: str, missing: str) -> None:
    """It was told of a `post_username`, which it has never heard of."""
    app = Flask("shop")
    app.add_url_rule("/", view_func=flask.limited("5/minute", key=key)(lambda: "well"), methods=["POST"])
    answer = app.test_client().post("/", json={})
    assert answer.status_code == 400
    assert answer.json is not None
    assert answer.json["detail"] == f"this request has no {missing}, and a rate limit counts by it"
    assert answer.json["param"] == missing.split()[1]


# -- what is not installed -------------------------------------------------------------------------------------------

WITHOUT_CLIENTS = """
import sys
for name in ("redis", "hiredis", "asyncpg", "psycopg"):
    sys.modules[name] = None
from frontrow.core.errors import ConfigError
from frontrow.limits import ConcurrencyLimiter, LeasedLimiter, Limiter, Tiers
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.shared_rules import SharedRules
try:
    {}
except ConfigError as error:
    print(error.message)
"""


@pytest.mark.parametrize(
    ("extra", "made"),
    [
        ("redis", "Limiter('5/s', store='redis://127.0.0.1:1/0')"),
        ("redis", "LeasedLimiter('5/s', store='redis://127.0.0.1:1/0')"),
        ("redis", "RateLimitMiddleware(None, '5/s', store='redis://127.0.0.1:1/0')"),
        ("redis", "ConcurrencyLimiter(2, name='a', store='redis://127.0.0.1:1/0')"),
        ("redis", "Tiers({}, store='redis://127.0.0.1:1/0')"),
        ("redis", "SharedRules([], store='redis://127.0.0.1:1/0', name='a')"),
        ("postgresql", "Limiter('5/s', store='postgresql://127.0.0.1:1/shop')"),
        ("postgresql", "SharedRules([], store='postgresql://127.0.0.1:1/shop', name='a')"),
    ],
)
def test_a_client_that_is_not_installed_is_named_with_the_command_that_installs_it(extra: str, made: str) -> None:
    """Without the extra, a Redis URL was a ModuleNotFoundError for hiredis."""
    script = WITHOUT_CLIENTS.format(made)
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout.rstrip().endswith(f"pip install 'frontrow-limits[{extra}]'"), told.stderr
