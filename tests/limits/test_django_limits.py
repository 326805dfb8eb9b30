"""The limiter in a real Django project, sync and async, seen by its test client."""

import asyncio
from collections.abc import Iterator
from typing import Any, ClassVar

import django
import pytest
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.utils.decorators import method_decorator

from frontrow.core.errors import ConfigError
from frontrow.limits import Quota
from frontrow.limits.rules import RequestRule
from frontrow.testing.clock import ManualClock

if not settings.configured:
    settings.configure(
        SECRET_KEY="only for tests",
        ALLOWED_HOSTS=["*"],
        USE_TZ=True,
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    )
settings.INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Backend"]
django.setup()

from django.contrib.auth.models import User  # noqa: E402  # models need the settings
from django.contrib.sessions.backends.signed_cookies import SessionStore  # noqa: E402
from django.views import View  # noqa: E402

from frontrow.limits.http.django import limited  # noqa: E402

OURS = "frontrow.limits.http.django.RateLimitMiddleware"
AUTH = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
FIELDS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "ratelimit-policy"}


class Backend:
    """Users that need no database."""

    def get_user(self, number: str) -> User:
        return User(pk=int(number), username=f"fan{number}", password="x")

    async def aget_user(self, number: str) -> User:
        return self.get_user(number)


def signed_in(client: Any, number: int) -> Any:
    session = SessionStore()
    session[SESSION_KEY] = str(number)
    session["_auth_user_backend"] = f"{__name__}.Backend"
    session[HASH_SESSION_KEY] = Backend().get_user(str(number)).get_session_auth_hash()
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    return client


def home(request: Any) -> HttpResponse:
    return HttpResponse(request.body or b"served", status=int(request.headers.get("x-answer", 200)))


async def async_home(request: Any) -> HttpResponse:
    return home(request)


@limited("1/minute", statuses=(403,))
def sign_in(request: Any) -> HttpResponse:
    if request.method == "PUT":
        raise PermissionDenied
    return HttpResponse("served")


@limited("1/minute", key="user", on_missing="ip")
def me(request: Any) -> HttpResponse:
    return HttpResponse("served")


@limited("1/minute", key="user", on_missing="ip")
async def async_me(request: Any) -> HttpResponse:
    return HttpResponse("served")


class Codes(View):
    @method_decorator(limited("1/minute", name="codes"))
    def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


class PlainMethod(View):
    @method_decorator(limited("1/minute"))
    def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


@method_decorator(limited("1/minute"), name="dispatch")
class PlainClass(View):
    def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


@method_decorator(limited("1/minute"), name="dispatch")
class AsyncDispatch(View):
    async def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


class AsyncMethod(View):
    @method_decorator(limited("1/minute"))
    async def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


class Urls:
    urlpatterns: ClassVar[list[Any]] = [
        path("", home),
        path("async", async_home),
        path("sign-in", sign_in),
        path("me", me),
        path("async-me", async_me),
        path("codes", Codes.as_view()),
        path("more-codes", Codes.as_view()),
        path("plain-method", PlainMethod.as_view()),
        path("plain-class", PlainClass.as_view()),
        path("async-method", AsyncMethod.as_view()),
        path("async-dispatch", AsyncDispatch.as_view()),
    ]


@pytest.fixture(autouse=True)
def project() -> Iterator[None]:
    with override_settings(ROOT_URLCONF=Urls, MIDDLEWARE=AUTH, FRONTROW_LIMITS={"clock": ManualClock()}):
        yield


def middleware(*order: str, **options: Any) -> Any:
    return override_settings(MIDDLEWARE=list(order), FRONTROW_LIMITS={"clock": ManualClock(), **options})


async def ask(client: Any, url: str, times: int, method: str = "get", **more: Any) -> list[Any]:
    """The same requests through the sync or the async client."""
    answers = []
    for _ in range(times):
        send = getattr(client, method)
        is_async = isinstance(client, AsyncClient)
        answers.append(await send(url, **more) if is_async else await asyncio.to_thread(send, url, **more))
    return answers


def statuses(answers: list[Any]) -> list[int]:
    return [answer.status_code for answer in answers]


def log_in_nobody(request: Any, decision: Any) -> Any:
    return HttpResponse(f"<b>{decision.limit}</b>", status=429)


CLIENTS = [Client, AsyncClient]


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("url", ["/", "/async", "/nowhere"])
async def test_the_middleware_answers_429_with_headers(kind, url):
    with middleware(OURS, *AUTH, rules="2/minute"):
        answers = await ask(kind(), url, 3)
    assert statuses(answers)[2] == 429
    assert 429 not in statuses(answers)[:2]
    assert all({name.lower() for name in answer.headers} >= FIELDS for answer in answers)
    assert [answer["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
    assert answers[2].json()["violated-policies"] == ["default"]


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("order", [(OURS, *AUTH), (*AUTH, OURS)])
async def test_the_signed_in_user_is_the_key_wherever_authentication_stands(kind, order):
    rules = [
        RequestRule("fans", Quota.parse("1/minute"), ("user",), on_missing="ip"),
        RequestRule("address", Quota.parse("4/minute")),
    ]
    with middleware(*order, rules=rules):
        client = signed_in(kind(), 1)
        answers = await ask(client, "/", 2)
        assert statuses(answers) == [200, 429]
        assert [answer["ratelimit-policy"] for answer in answers] == ['"fans";q=1;w=60'] * 2
        assert statuses(await ask(signed_in(client, 2), "/", 2)) == [200, 429]
        others = [(await ask(signed_in(client, number), "/", 1))[0] for number in (3, 4, 5)]
        assert statuses(others) == [200, 200, 429], "the two that were refused later used nothing of the address"
        assert others[2].json()["violated-policies"] == ["address"]


@pytest.mark.parametrize("kind", CLIENTS)
async def test_exemptions_statuses_bodies_preflights_and_own_answers(kind):
    with middleware(OURS, *AUTH, rules="1/minute", exempt_users=["7"], exempt_paths=["/codes"]):
        assert statuses(await ask(signed_in(kind(), 7), "/", 3)) == [200] * 3
        client = signed_in(kind(), 1)
        assert statuses(await ask(client, "/", 2)) == [200, 429]
    tries = RequestRule("tries", Quota.parse("1/minute"), statuses=(401,))
    with middleware(OURS, rules=[tries], on_refused=f"{__name__}.log_in_nobody"):
        client = kind()
        preflight = {"origin": "https://fans.example", "access-control-request-method": "GET"}
        assert statuses(await ask(client, "/", 2, headers={"x-answer": "401"})) == [401, 429]
        assert statuses(await ask(client, "/", 2, "options", headers=preflight)) == [200, 200]
        refused = (await ask(client, "/", 1))[0]
        assert (refused.content, refused["content-type"][:9]) == (b"<b>1</b>", "text/html")
        assert int(refused["retry-after"]) >= 1
    account = RequestRule("account", Quota.parse("1/minute"), ("email",))
    with middleware(OURS, rules=[account], identify={"email": "json:email"}):
        json = {"content_type": "application/json"}
        client = kind()
        answers = await ask(client, "/", 2, "post", data={"email": "ann@example.org"}, **json)
        assert (statuses(answers), answers[0].content) == ([200, 429], b'{"email": "ann@example.org"}')
        assert statuses(await ask(client, "/", 1, "post", data={}, **json)) == [400]


async def test_async_functions_are_awaited_by_async_django_and_refused_by_sync_django():
    async def tenant(request: Any) -> str:
        return str(request.headers["x-tenant"])

    rules = [RequestRule("tenants", Quota.parse("1/minute"), ("tenant",))]
    with middleware(OURS, rules=rules, identify={"tenant": tenant}):
        client = AsyncClient()
        assert statuses(await ask(client, "/", 2, headers={"x-tenant": "a"})) == [200, 429]
        assert statuses(await ask(client, "/", 1, headers={"x-tenant": "b"})) == [200]
        with pytest.raises(ConfigError, match="identify: tenant is async"):
            Client().get("/")


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("url", ["/me", "/async-me"])
async def test_a_decorated_view_counts_by_user(kind, url):
    client = signed_in(kind(), 1)
    answers = await ask(client, url, 2)
    assert statuses(answers) == [200, 429]
    assert all({name.lower() for name in answer.headers} >= FIELDS for answer in answers)
    assert statuses(await ask(signed_in(client, 2), url, 1)) == [200]
    assert statuses(await ask(kind(), url, 2)) == [200, 429], "not signed in: by address"


async def test_decorated_views_count_failures_share_names_and_leave_headers_to_the_middleware():
    client = Client()
    assert statuses(await ask(client, "/sign-in", 2)) == [200, 200]
    assert statuses(await ask(client, "/sign-in", 1, "put")) == [403]
    assert statuses(await ask(client, "/sign-in", 1)) == [429]
    assert statuses(await ask(client, "/codes", 1) + await ask(client, "/more-codes", 1)) == [200, 429]
    with middleware(OURS, rules="9/minute"):
        answers = await ask(Client(), "/codes", 2)
        assert statuses(answers) == [200, 429]
        assert [answer["ratelimit-policy"] for answer in answers] == ['"codes";q=1;w=60'] * 2


def test_wrong_settings_are_an_error_that_says_what_is_right(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text('[[limits.rules]]\nname = "all"\nquota = "1/minute"')
    with middleware(OURS, file=str(file)):
        client = Client()
        assert [client.get("/").status_code, client.get("/").status_code] == [200, 429]
    with middleware(OURS), pytest.raises(ConfigError, match='FRONTROW_LIMITS = {"rules": "100/minute"}'):
        Client().get("/")
    with pytest.raises(ConfigError, match="must take the request"):
        limited("1/minute")(len)([])


@pytest.mark.parametrize("path", ["/plain-method", "/plain-class", "/async-method"])
def test_a_decorated_method_counts_although_django_decorates_it_at_each_request(path: str) -> None:
    with override_settings(ROOT_URLCONF=Urls, FRONTROW_LIMITS={}):
        assert [Client().get(path).status_code for _ in range(3)] == [200, 429, 429]


def test_dispatch_of_an_async_view_is_refused_with_what_to_do() -> None:
    with override_settings(ROOT_URLCONF=Urls, FRONTROW_LIMITS={}), pytest.raises(ConfigError, match="async def itself"):
        Client().get("/async-dispatch")
