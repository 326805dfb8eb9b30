"""Django: `@exempt`, `methods=`, and one limit for all views of an `include`."""

import asyncio
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import django
import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import include, path
from django.utils.decorators import method_decorator
from django.views import View

from frontrow.limits.http.django import exempt, include_limited, limited

if not settings.configured:
    settings.configure(
        SECRET_KEY="only for tests",
        ALLOWED_HOSTS=["*"],
        USE_TZ=True,
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    )
    django.setup()

OURS = "frontrow.limits.http.django.RateLimitMiddleware"


def served(request: Any, **parts: Any) -> HttpResponse:
    return HttpResponse("served")


async def async_served(request: Any) -> HttpResponse:
    return HttpResponse("served")


class AsyncClass(View):
    async def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


@exempt
class FreeClass(View):
    def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


@method_decorator(exempt, name="dispatch")
class FreeDispatch(View):
    def get(self, request: Any) -> HttpResponse:
        return HttpResponse("served")


@exempt
def free(request: Any) -> HttpResponse:
    return HttpResponse("served")


class Inner(ModuleType):
    urlpatterns: ClassVar[list[Any]] = [path("three/<int:number>", served, name="three")]


class Api(ModuleType):
    app_name = "api"
    urlpatterns: ClassVar[list[Any]] = [
        path("one", served),
        path("two", async_served),
        path("class", AsyncClass.as_view()),
        path("free", free),
        path("inner/", include((Inner.urlpatterns, "inner"))),
    ]


class Urls(ModuleType):
    urlpatterns: ClassVar[list[Any]] = [
        path("counted", served),
        path("free", free),
        path("free-class", FreeClass.as_view()),
        path("free-dispatch", FreeDispatch.as_view()),
        path("codes", limited("1/minute", methods=["POST"])(served)),
        path("api/", include_limited(Api("api.urls"), "2/minute")),
        path("names/", include_limited((Api.urlpatterns, "other"), "5/minute", key="post:name", methods=["POST"])),
    ]


@pytest.fixture(autouse=True)
def _project() -> Iterator[None]:
    with override_settings(ROOT_URLCONF=Urls("urls"), MIDDLEWARE=[], FRONTROW_LIMITS={}):
        yield


def test_an_exempt_view_is_not_counted_by_the_middleware_and_never_refused() -> None:
    with override_settings(MIDDLEWARE=[OURS], FRONTROW_LIMITS={"rules": "1/minute"}):
        client = Client()
        paths = ("/counted", "/counted", "/free", "/free", "/free-class", "/free-dispatch", "/counted", "/nowhere")
        assert [client.get(each).status_code for each in paths] == [200, 429, 200, 200, 200, 200, 429, 429]

        async def ask() -> list[int]:
            client = AsyncClient()
            return [(await client.get(each)).status_code for each in paths]

        assert asyncio.run(ask()) == [200, 429, 200, 200, 200, 200, 429, 429]


def test_a_request_with_another_urlconf_counts() -> None:
    class Other(ModuleType):
        urlpatterns: ClassVar[list[Any]] = [path("free", served)]

    def choose(get_response: Any) -> Any:
        def call(request: Any) -> Any:
            request.urlconf = Other("other")
            return get_response(request)

        return call

    globals()["choose"] = choose
    with override_settings(MIDDLEWARE=[f"{__name__}.choose", OURS], FRONTROW_LIMITS={"rules": "1/minute"}):
        assert [Client().get("/free").status_code for _ in range(1)] == [200]
        client = Client()
        assert [client.get("/free").status_code for _ in range(2)] == [200, 429]


def test_only_the_named_methods_count() -> None:
    client = Client()
    told = [client.generic(method, "/codes").status_code for method in ("GET", "POST", "HEAD", "POST", "GET")]
    assert told == [200, 200, 200, 429, 200]


def test_an_include_has_one_limit_for_all_its_views_sync_and_async() -> None:
    client = Client()
    told = [client.get(f"/api/{name}").status_code for name in ("one", "two", "class", "inner/three/7", "free")]
    assert told == [200, 200, 429, 429, 200]
    assert client.get("/counted").status_code == 200
    with override_settings(FRONTROW_LIMITS={"prefix": "fresh"}):

        async def ask() -> list[int]:
            client = AsyncClient()
            return [(await client.get(f"/api/{name}")).status_code for name in ("class", "two", "one", "free")]

        assert asyncio.run(ask()) == [200, 200, 429, 200]


def test_the_names_of_included_urls_stay() -> None:
    from django.urls import reverse

    assert reverse("api:inner:three", args=[7]) == "/api/inner/three/7"
    assert reverse("other:inner:three", args=[7]) == "/names/inner/three/7"
