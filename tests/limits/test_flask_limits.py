"""The limiter in real Flask applications: the extension, the decorator, error handlers and other extensions."""

from typing import Any

import flask
import pytest
from flask.views import MethodView

from frontrow.core.errors import ConfigError
from frontrow.limits import Quota
from frontrow.limits.http.flask import RateLimited, RateLimits, limited
from frontrow.limits.rules import RequestRule
from frontrow.testing.clock import ManualClock

FIELDS = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy"}


def make_app(**views: Any) -> flask.Flask:
    app = flask.Flask("shop")
    for name, view in views.items():
        app.add_url_rule(f"/{name}", name, view, methods=["GET", "POST", "PUT", "OPTIONS"])
    return app


def home() -> Any:
    return flask.request.get_data() or b"served", int(flask.request.headers.get("x-answer", 200))


def ask(app: flask.Flask, *requests: str, **more: Any) -> list[Any]:
    return [
        app.test_client().open(path, method=method, **more) for method, path in (each.split(" ") for each in requests)
    ]


def statuses(answers: list[Any]) -> list[int]:
    return [answer.status_code for answer in answers]


def has_fields(answer: Any) -> bool:
    return all(name in answer.headers for name in FIELDS)


@pytest.mark.parametrize("extension", [True, False])
def test_a_before_request_function_limits_a_blueprint_and_lets_requests_pass(extension: bool):
    """It returns None, which is no response."""
    app, blueprint = flask.Flask("shop"), flask.Blueprint("api", "api", url_prefix="/api")
    limits = RateLimits(app if extension else None, rules="9/minute" if extension else None, clock=ManualClock())

    @blueprint.before_request
    @limits.limited("2/minute")
    def limit_api() -> None:
        return None

    blueprint.add_url_rule("/codes", "codes", home)
    blueprint.add_url_rule("/other", "other", limits.limited("1/minute")(home))
    app.register_blueprint(blueprint)
    app.add_url_rule("/home", "home", home)
    answers = ask(app, "GET /api/codes", "GET /api/codes", "GET /api/codes", "GET /home")
    assert statuses(answers) == [200, 200, 429, 200]
    assert [answer.headers.get("x-ratelimit-remaining") for answer in answers[:3]] == ["1", "0", "0"]


def test_the_extension_limits_all_requests_and_writes_headers():
    app = make_app(home=home)
    limits = RateLimits(rules="2/minute", exempt_paths=["/static/**"], exempt_users=["staff"], clock=ManualClock())

    @app.before_request
    def load_user() -> None:
        flask.g.user = flask.request.headers.get("x-user")

    limits.init_app(app)
    assert statuses(ask(app, *["GET /home"] * 3, headers={"x-user": "staff"})) == [200] * 3
    answers = ask(app, "GET /home", "GET /nowhere", "GET /home", "GET /static/x")
    assert statuses(answers) == [200, 404, 429, 404]
    assert [has_fields(answer) for answer in answers] == [True, True, True, False]
    assert answers[2].json["violated-policies"] == ["default"]
    preflight = {"origin": "https://fans.example", "access-control-request-method": "GET"}
    assert statuses(ask(app, "OPTIONS /home", headers=preflight)) == [200]
    limits.close()


def test_a_refusal_goes_through_error_handlers_and_after_request():
    app = make_app(home=home)

    @app.errorhandler(429)
    def slow_down(error: RateLimited) -> Any:
        return {"error": "slow down", "rule": error.decision.rule}, 429

    @app.after_request
    def add_cors(response: Any) -> Any:
        response.headers["access-control-allow-origin"] = "*"
        return response

    RateLimits(app, "1/minute", clock=ManualClock())
    refused = ask(app, "GET /home", "GET /home")[1]
    assert (refused.status_code, refused.json) == (429, {"error": "slow down", "rule": "default"})
    assert refused.headers["access-control-allow-origin"] == "*"
    assert has_fields(refused)
    assert int(refused.headers["retry-after"]) >= 1


def test_rules_of_the_extension_count_failures_and_read_bodies():
    app = make_app(home=home)
    rules = [
        RequestRule("tries", Quota.parse("1/minute"), statuses=(401,)),
        RequestRule("account", Quota.parse("2/minute"), ("email",), methods=("PUT",)),
    ]
    RateLimits(app, rules, identify={"email": "form:email"}, clock=ManualClock())
    form = {"data": {"email": "ann@example.org"}}
    answers = ask(app, "PUT /home", "PUT /home", "PUT /home", **form)
    assert (statuses(answers), answers[0].data) == ([200, 200, 429], b"email=ann@example.org")
    assert statuses(ask(app, "PUT /home")) == [400]
    assert statuses(ask(app, "GET /home", "GET /home", headers={"x-answer": "401"})) == [401, 429]


def test_a_view_that_fails_is_settled_as_500_even_if_the_error_is_raised_further():
    def fail() -> Any:
        raise ZeroDivisionError

    app = make_app(fail=fail)
    RateLimits(app, [RequestRule("tries", Quota.parse("1/minute"), statuses=(401,))], clock=ManualClock())
    app.testing = True
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            ask(app, "GET /fail")


def test_decorated_views_answer_429_whatever_they_are():
    limits = RateLimits(clock=ManualClock(), identify={"user": "header:x-user"})

    @limits.limited("1/minute", key="user", statuses=(403, 200))
    def plain() -> Any:
        if flask.request.method == "PUT":
            flask.abort(404)
        return {"served": True}

    @limited("1/minute")
    async def later() -> str:
        return "served"

    class Codes(MethodView):
        decorators = (limits.limited(lambda request: request.headers.get("x-quota"), name="codes"),)

        def get(self) -> str:
            return "served"

    app = make_app(plain=plain, later=later, codes=Codes.as_view("codes"))
    fan = {"headers": {"x-user": "ann"}}
    answers = ask(app, "PUT /plain", "GET /plain", "GET /plain", **fan)
    assert statuses(answers) == [404, 200, 429]
    assert [has_fields(answer) for answer in answers] == [False, True, True]
    assert statuses(ask(app, "GET /plain")) == [400]
    assert statuses(ask(app, "GET /later", "GET /later")) == [200, 429]
    assert statuses(ask(app, "GET /codes", "GET /codes")) == [200, 200], "no quota, no limit"
    assert statuses(ask(app, "GET /codes", "GET /codes", headers={"x-quota": "1/minute"})) == [200, 429]


def test_a_store_that_is_down_and_fails_closed_is_503():
    limits = RateLimits(store="redis://127.0.0.1:1/0", on_store_down="closed")
    app = make_app(home=limits.limited("1/minute")(home))
    [answer] = ask(app, "GET /home")
    assert (answer.status_code, answer.json["title"]) == (503, "Temporarily reduced capacity")
    limits.close()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: RateLimits(on_refused=print), "errorhandler\\(429\\)"),
        (lambda: limited("1/minute", key=lambda_async), "identify: caller is async"),
        (lambda: limited(lambda_async), "the quota's function is async"),
        (lambda: limited("1/minute", cost=lambda_async), "cost is async"),
    ],
)
def test_what_cannot_work_is_an_error_at_once(make, expected):
    with pytest.raises(ConfigError, match=expected):
        make()


async def lambda_async(request: Any) -> str:
    return "1/minute"
