"""The throttles for Django REST framework, seen by a test client, and Django's system checks."""

from collections.abc import Iterator
from typing import Any, ClassVar

import django
import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings
from django.urls import path
from django.utils.decorators import method_decorator

if not settings.configured:
    settings.configure(SECRET_KEY="only for tests", ALLOWED_HOSTS=["*"], USE_TZ=True)
settings.INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core import checks  # noqa: E402
from rest_framework.decorators import api_view  # noqa: E402
from rest_framework.decorators import throttle_classes as decorate_throttles  # noqa: E402
from rest_framework.exceptions import PermissionDenied  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from frontrow.core.errors import ConfigError  # noqa: E402
from frontrow.limits.http import rest_framework as throttles  # noqa: E402
from frontrow.limits.http.django import exempt, limited  # noqa: E402
from frontrow.limits.http.django.checks import check_deployment, check_settings  # noqa: E402
from frontrow.limits.testing import LimitsInTest  # noqa: E402

RATES = {"user": "2/minute", "anon": "1/min", "uploads": "1/day", "open": None, "burst": "10/s burst 20"}
MODULE = "frontrow.limits.http.rest_framework"
OURS = "frontrow.limits.http.django.RateLimitMiddleware"
FIELDS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "ratelimit-policy"}


class Plain(APIView):
    authentication_classes: ClassVar[list[Any]] = []

    def get(self, request: Any) -> Response:
        return Response("served")


class ByUser(Plain):
    throttle_classes: ClassVar[list[Any]] = [throttles.UserRateThrottle]


class ByAddress(Plain):
    throttle_classes: ClassVar[list[Any]] = [throttles.AnonRateThrottle]


class Uploads(Plain):
    throttle_classes: ClassVar[list[Any]] = [throttles.ScopedRateThrottle]
    throttle_scope = "uploads"


class NoScope(Plain):
    throttle_classes: ClassVar[list[Any]] = [throttles.ScopedRateThrottle]


class OwnRate(throttles.RateThrottle):
    rate = "1/hour"


class Both(Plain):
    throttle_classes: ClassVar[list[Any]] = [OwnRate, throttles.UserRateThrottle]


class Reverse(Plain):
    throttle_classes: ClassVar[list[Any]] = [throttles.UserRateThrottle, OwnRate]


@exempt
class Free(ByAddress):
    pass


@exempt
@api_view(["GET"])
@decorate_throttles([throttles.AnonRateThrottle])
def free_function(request: Any) -> Response:
    return Response("served")


class LimitedMethod(Plain):
    """Two limits of one method, as Django decorates methods."""

    @method_decorator(limited("1/minute", key="user", on_missing="ip"))
    @method_decorator(limited("9/hour"))
    def get(self, request: Any) -> Response:
        return Response("served")


class ThrottledAndLimited(ByUser):
    @method_decorator(limited("1/minute", key="user"))
    @method_decorator(limited("1/hour", key="user"))
    def get(self, request: Any) -> Response:
        return Response("served")


@api_view(["GET"])
@limited("1/minute")
def limited_function(request: Any) -> Response:
    return Response("served")


class LimitedName(Plain):
    @method_decorator(limited("1/minute", key="post:name"))
    def post(self, request: Any) -> Response:
        return Response(request.data)


class ReadBefore(LimitedName):
    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        assert request.data["name"] == "ann"


class SignIn(Plain):
    @method_decorator(limited("1/minute", statuses=[403]))
    def get(self, request: Any) -> Response:
        if "right" in request.query_params:
            return Response("served")
        raise PermissionDenied


class Urls:
    urlpatterns = (
        path("user", ByUser.as_view()),
        path("anon", ByAddress.as_view()),
        path("uploads", Uploads.as_view()),
        path("no-scope", NoScope.as_view()),
        path("both", Both.as_view()),
        path("reverse", Reverse.as_view()),
        path("free", Free.as_view()),
        path("free-function", free_function),
        path("limited-method", LimitedMethod.as_view()),
        path("throttled-and-limited", ThrottledAndLimited.as_view()),
        path("limited-function", limited_function),
        path("limited-name", LimitedName.as_view()),
        path("read-before", ReadBefore.as_view()),
        path("sign-in", SignIn.as_view()),
    )


@pytest.fixture(autouse=True)
def _project(rate_limits: LimitsInTest) -> Iterator[None]:
    rest = {"DEFAULT_THROTTLE_RATES": RATES, "UNAUTHENTICATED_USER": None}
    with override_settings(ROOT_URLCONF=Urls, MIDDLEWARE=[], FRONTROW_LIMITS={}, REST_FRAMEWORK=rest):
        yield


def client_of(number: int | None = None) -> APIClient:
    client = APIClient()
    if number is not None:
        client.force_authenticate(User(pk=number, username=f"fan{number}"))
    return client


def ask(client: APIClient, *paths: str) -> list[int]:
    return [client.get(each).status_code for each in paths]


def test_users_are_counted_by_their_id_and_others_by_their_address(rate_limits: LimitsInTest) -> None:
    ann, bob, nobody = client_of(1), client_of(2), client_of()
    assert ask(ann, "/user", "/user", "/user") == [200, 200, 429]
    assert ask(bob, "/user") == [200]
    assert ask(nobody, "/user", "/user", "/user") == [200, 200, 429]
    assert [nobody.get("/user", REMOTE_ADDR="203.0.113.9").status_code] == [200]
    rate_limits.advance(121)
    assert ask(ann, "/user") == [200]


def test_signed_in_users_are_not_counted_as_anonymous() -> None:
    assert ask(client_of(), "/anon", "/anon") == [200, 429]
    assert ask(client_of(1), "/anon", "/anon") == [200, 200]


def test_scopes_are_those_of_the_views() -> None:
    assert ask(client_of(), "/uploads", "/uploads", "/no-scope", "/no-scope") == [200, 429, 200, 200]


def test_allowed_and_refused_responses_have_the_headers_and_wait_is_told() -> None:
    answers = [client_of().get("/anon") for _ in range(2)]
    assert all({name.lower() for name in answer.headers} >= FIELDS for answer in answers)
    assert answers[0].headers["x-ratelimit-remaining"] == "0"
    wait = int(answers[1].headers["retry-after"])
    assert 0 < wait <= 120
    assert f"available in {wait} seconds" in answers[1].data["detail"]


def test_if_one_throttle_refuses_the_others_are_not_charged() -> None:
    for address in ("/both", "/reverse"):
        ann = client_of(7 if address == "/both" else 8)
        assert ask(ann, address, address, address) == [200, 429, 429]
        assert ask(ann, "/user", "/user") == [200, 429], "one unit was used"


def test_the_middleware_writes_the_headers_once_and_is_given_back() -> None:
    with override_settings(MIDDLEWARE=[OURS], FRONTROW_LIMITS={"rules": "3/minute"}):
        ann = client_of()
        assert ask(ann, "/anon", "/anon", "/anon", "/user", "/user", "/user") == [200, 429, 429, 200, 200, 429]


def test_a_limit_decorates_a_method_and_a_function_of_rest_framework() -> None:
    for where in ("/limited-method", "/limited-function"):
        answers = [client_of().get(where) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 429]
        assert all({name.lower() for name in answer.headers} >= FIELDS for answer in answers)
    assert ask(client_of(1), "/limited-method", "/limited-method") == [200, 429], "REST framework's user, not Django's"


def test_two_limits_of_a_method_that_refuse_give_back_what_the_throttle_and_the_middleware_charged() -> None:
    with override_settings(MIDDLEWARE=[OURS], FRONTROW_LIMITS={"rules": "3/minute"}):
        ann = client_of(1)
        assert ask(ann, *["/throttled-and-limited"] * 3) == [200, 429, 429]
        assert ask(ann, "/user", "/user") == [200, 429], "the throttle has counted what was served"
        assert ask(ann, "/no-scope", "/no-scope") == [200, 429], "and so has the middleware"


def test_a_limit_of_a_rest_view_counts_by_its_body_and_leaves_it_to_the_view() -> None:
    told = [client_of().post("/limited-name", {"name": name}, format="json") for name in ("ann", "ann", "bob")]
    assert [answer.status_code for answer in told] == [200, 429, 200]
    assert told[2].data == {"name": "bob"}


def test_a_body_that_a_permission_has_read_is_counted_or_has_no_key() -> None:
    for form, statuses in (("json", [200, 429]), ("multipart", [400, 400])):  # Django keeps no body of a multipart form
        told = [client_of().post("/read-before", {"name": "ann"}, format=form) for _ in range(2)]
        assert [answer.status_code for answer in told] == statuses, form


def test_exceptions_of_rest_framework_count_by_their_own_status() -> None:
    assert ask(client_of(), "/sign-in?right", "/sign-in?right", "/sign-in", "/sign-in") == [200, 200, 403, 429]


def test_an_exempt_view_has_no_throttle() -> None:
    assert ask(client_of(), "/free", "/free", "/free") == [200] * 3
    assert ask(client_of(), "/free-function", "/free-function", "/free-function") == [200] * 3


def test_a_scope_without_a_rate_is_one_sentence() -> None:
    with (
        override_settings(REST_FRAMEWORK={"DEFAULT_THROTTLE_RATES": {"user": "1/minute"}}),
        pytest.raises(ConfigError, match="the scope 'anon' has no rate; add it to DEFAULT_THROTTLE_RATES"),
    ):
        client_of().get("/anon")


def found(**project: Any) -> list[tuple[str, str]]:
    with override_settings(**project):
        return [(str(each.id), f"{each.msg} {each.hint}") for each in check_settings(None)]


def throttled(name: str = f"{MODULE}.UserRateThrottle", **rates: Any) -> dict[str, Any]:
    return {"DEFAULT_THROTTLE_CLASSES": [name], "DEFAULT_THROTTLE_RATES": rates}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("E001", {"FRONTROW_LIMITS": "100/minute"}, 'Write FRONTROW_LIMITS = {"rules": "100/minute"}'),
    ("E002", {"FRONTROW_LIMITS": {"rule": "1/minute"}}, "Did you mean 'rules'?"),
    ("E002", {"FRONTROW_LIMITS": {"rules": "1/fortnight"}}, "'fortnight' is no unit of time"),
    ("E002", {"FRONTROW_LIMITS": {"rules": "1/day", "deadline_s": 25}}, "Correct deadline_s"),
    ("E002", {"FRONTROW_LIMITS": {"rules": "1/day", "exempt_if": "shop.missing.function"}}, "No module named 'shop"),
    ("E002", {"FRONTROW_LIMITS": {"file": "no-such-file.toml"}}, "no-such-file.toml"),
    ("E003", {"MIDDLEWARE": [OURS], "FRONTROW_LIMITS": {}}, "take the middleware out"),
    ("W001", {"FRONTROW_LIMITS": {"rules": "1/minute"}}, "best at the top"),
    ("E004", {"REST_FRAMEWORK": throttled(user="100 a minute")}, "The rate of 'user' is wrong"),
    ("E004", {"REST_FRAMEWORK": throttled(anon="1/minute")}, "there is none for its scope 'user'"),
]


@pytest.mark.parametrize(("number", "project", "told"), WRONG, ids=[f"{each[0]}-{each[2][:20]}" for each in WRONG])
def test_a_mistake_in_the_settings_is_found_with_an_id_and_a_hint(
    number: str, project: dict[str, Any], told: str
) -> None:
    [(identity, text)] = found(**project)
    assert identity == f"frontrow_limits.{number}"
    assert told in text


def test_a_rule_by_user_without_authentication_is_a_warning() -> None:
    from frontrow.limits.http.django import RequestRule

    rules = {"rules": [RequestRule("fans", "1/minute", key=["user"])]}
    [(identity, text)] = found(MIDDLEWARE=[OURS], FRONTROW_LIMITS=rules)
    assert (identity, "AuthenticationMiddleware" in text) == ("frontrow_limits.W002", True)
    assert found(MIDDLEWARE=[OURS], FRONTROW_LIMITS={**rules, "identify": {"user": "header:x-user"}}) == []


def test_right_settings_have_no_finding_and_memory_is_a_warning_before_a_deployment() -> None:
    project = {"MIDDLEWARE": [OURS], "FRONTROW_LIMITS": {"rules": "1/minute"}, "REST_FRAMEWORK": throttled(user="9/m")}
    assert found(**project) == []
    with override_settings(**project):
        assert [str(each.id) for each in check_deployment(None)] == ["frontrow_limits.W003"]
    with override_settings(FRONTROW_LIMITS={"rules": "1/minute", "store": "redis://127.0.0.1:6379/0"}):
        assert check_deployment(None) == []


def test_manage_py_check_finds_them_in_a_project_with_the_application() -> None:
    apps = ["django.contrib.auth", "django.contrib.contenttypes", "frontrow.limits.http.django"]
    told = r"frontrow_limits\.E002\) FRONTROW_LIMITS has an option 'rule'"
    with (
        override_settings(INSTALLED_APPS=apps, FRONTROW_LIMITS={"rule": "1/minute"}),
        pytest.raises(SystemCheckError, match=told),
    ):
        call_command("check")
    for check in (check_settings, check_deployment):
        checks.registry.registry.registered_checks.discard(check)
        checks.registry.registry.deployment_checks.discard(check)
