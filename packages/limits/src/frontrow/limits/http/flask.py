"""Limits for Flask: an extension with rules for all requests, and a decorator for views.

    limits = RateLimits(app, rules="100/minute", store="redis://127.0.0.1:6379/0")

    @app.post("/codes")
    @limits.limited("5/minute")
    def send_code(): ...

A refusal goes through the application's error handlers, so `@app.errorhandler(429)` gives it a body of your own. It
goes through `after_request` too, so extensions like Flask-CORS add their headers to it.
"""

import functools
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from flask import Blueprint, Flask, Request, Response, after_this_request, current_app, g, make_response, request
from werkzeug.exceptions import BadRequest, HTTPException, ServiceUnavailable, TooManyRequests

from frontrow.core.errors import ConfigError
from frontrow.limits.http.body_parts import BodyPart
from frontrow.limits.http.caller_identity import run_steps
from frontrow.limits.http.endpoints import EndpointCalls, LimitDecorator, decorate
from frontrow.limits.http.exempt import exempt, is_exempt
from frontrow.limits.http.headers import FIELDS, ROUTE_FIELDS, Field, as_text, tightest
from frontrow.limits.http.open_charges import give_back, tell_charge
from frontrow.limits.http.refusal_responses import missing_client_response, refusal_response
from frontrow.limits.http.request_limits import Charge, MissingClient, Options, RequestLimits
from frontrow.limits.http.route_limits import OF_MIDDLEWARE, LimitOptions, QuotaLike, QuotaOf, RouteLimit, RouteLimits
from frontrow.limits.http.rule_conversion import Rules
from frontrow.limits.http.wsgi import ENVIRONS, RateLimitMiddleware, is_preflight
from frontrow.limits.quota import Decision, Quota
from frontrow.limits.rules import RequestRule, RuleBook
from frontrow.limits.tiers import Tiers

__all__ = [
    "BodyPart",
    "Decision",
    "Quota",
    "RateLimitMiddleware",
    "RateLimited",
    "RateLimits",
    "RequestRule",
    "RuleBook",
    "Tiers",
    "exempt",
    "limited",
]

F = TypeVar("F")  # a view or a blueprint
_OPEN = "frontrow.limits.open_charge"  # what `before_request` charged and `after_request` settles
_OPEN_IN_BLUEPRINTS = "frontrow.limits.open_charges_of_blueprints"


class RateLimited(TooManyRequests):
    """A limit refused this request. `decision` says which and until when."""

    decision: Decision


class RateLimits:
    """Rules for all requests of an application, and limits of single views. They share a store and options."""

    def __init__(
        self, app: Flask | None = None, rules: Rules | None = None, store: Any = "memory://", **options: Unpack[Options]
    ) -> None:
        if "on_refused" in options:
            raise ConfigError("for a body of your own, use @app.errorhandler(429)", param="on_refused")
        of_routes = {name: value for name, value in options.items() if name not in OF_MIDDLEWARE}
        self.limits = RequestLimits(rules, REQUESTS, store=store, **options) if rules is not None else None
        self.routes = RouteLimits(REQUESTS, store=store, **of_routes)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Limit the requests of this application by the rules. Decorated views need no `init_app`."""
        given: Any = app
        if not isinstance(given, Flask):
            wanted = 'the application comes first and rules are named, like RateLimits(app, rules="100/minute")'
            raise ConfigError(f"{wanted}, not {given!r:.80}", param="app")
        app.extensions["frontrow_limits"] = self
        if self.limits is not None:
            app.before_request(self._charge)
            app.after_request(self._settle)
            app.teardown_request(self._settle_failure)

    def limited(self, *quotas: QuotaLike | QuotaOf, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
        """Limit a view, or all views of a blueprint together: `limited("100/minute")(blueprint)`.

        `options`: `key`, `name`, `methods`, `cost`, `statuses`, `on_missing`.
        """
        limit = self.routes.make(*quotas, **options)

        def limit_one(limited: Any) -> Any:
            if isinstance(limited, Blueprint):
                return _limit_blueprint(limited, limit)
            return decorate(_plain(limited), limit, CALLS)

        return LimitDecorator(limit_one, quotas, Blueprint)

    def close(self) -> None:
        """Close the store's connections."""
        if self.limits is not None:
            self.limits.close()
        self.routes.close()

    def _charge(self) -> Response | None:
        limits, environ = self.limits, request.environ
        assert limits is not None
        if is_exempt(_view()):
            return None
        mount = request.root_path
        route_key = (request.method, mount + request.path, mount)
        route = limits.routes.get(route_key) or limits.add_route(*route_key)
        if not route.matches or (request.method == "OPTIONS" and limits.skips_preflights and is_preflight(environ)):
            return None
        try:
            key = run_steps(route.key_steps(request))
        except MissingClient as error:
            return _refuse_nameless(request, error)
        if key is None:  # exempt
            return None
        charge = limits.decide(route, key, request.method)
        told = tell_charge(environ, charge, FIELDS)
        if not charge.decision.allowed:
            give_back(environ)
            return _refuse(request, charge, told.to_write())
        if charge.decision.delay_us:
            time.sleep(charge.decision.delay_s)
        environ[_OPEN] = charge, told
        return None

    def _settle(self, response: Response) -> Response:
        if _OPEN in request.environ:
            charge, told = request.environ.pop(_OPEN)
            told.replace(charge.limits.settle(charge, response.status_code))
            _write(request, response, told.to_write())
        return response

    def _settle_failure(self, error: BaseException | None) -> None:
        """Without a response, which only a debugger or a test sees, the request counts as 500."""
        if _OPEN in request.environ:
            charge, _ = request.environ.pop(_OPEN)
            charge.limits.settle(charge, 500)


def _limit_blueprint(blueprint: Blueprint, limit: RouteLimit) -> Blueprint:
    """Put a limit in front of all views of a blueprint. Limit it before the application registers it."""
    name = f"blueprint {blueprint.import_name}.{blueprint.name}"

    def charge() -> Response | None:
        if is_exempt(_view()):
            return None
        try:
            charged = limit.check(request, name, request.method)
        except MissingClient as error:
            return _refuse_nameless(request, error)
        if charged is None:  # exempt
            return None
        told = tell_charge(request.environ, charged)
        if not charged.decision.allowed:
            give_back(request.environ)
            return _refuse(request, charged, told.to_write())
        request.environ.setdefault(_OPEN_IN_BLUEPRINTS, []).append((charged, told))
        return None

    blueprint.before_request(charge)
    blueprint.after_request(_settle_blueprints)
    blueprint.teardown_request(_settle_blueprint_failures)
    return blueprint


def _settle_blueprints(response: Response) -> Response:
    for charge, told in request.environ.pop(_OPEN_IN_BLUEPRINTS, ()):
        told.replace(charge.limits.settle(charge, response.status_code))
        _write(request, response, told.to_write())
    return response


def _settle_blueprint_failures(error: BaseException | None) -> None:
    """Without a response, which only a debugger or a test sees, the request counts as 500."""
    for charge, _ in request.environ.pop(_OPEN_IN_BLUEPRINTS, ()):
        charge.limits.settle(charge, 500)


def _view() -> Any:
    """The view that serves this request, if there is one."""
    return current_app.view_functions.get(request.endpoint or "")


def _plain(view: Any) -> Any:
    """A view that Flask can call directly, whether it is async or not."""
    if not inspect.iscoroutinefunction(view):
        return view

    @functools.wraps(view)
    def call(*args: Any, **kwargs: Any) -> Any:
        return current_app.ensure_sync(view)(*args, **kwargs)

    return call


def _refuse(request: Request, charge: Charge, fields: list[Field]) -> Response:
    status, all_fields, body = refusal_response(charge.decision, fields)
    answer = Response(body, status, as_text(all_fields))
    error: HTTPException
    if status == TooManyRequests.code:
        error = RateLimited(response=answer)
        error.decision = charge.decision
    else:
        error = ServiceUnavailable(response=answer)
    response = make_response(current_app.handle_user_exception(error))
    _write(request, response, all_fields[2:])  # also into the response of an error handler
    return response


def _refuse_nameless(request: Request, error: MissingClient) -> Response:
    status, fields, body = missing_client_response(error)
    wrong = BadRequest(error.message, response=Response(body, status, as_text(fields)))
    return make_response(current_app.handle_user_exception(wrong))


def _to_response(made: Any) -> Response | None:
    """A `before_request` function returns None to let the request pass. A view that does so is Flask's own error."""
    return None if made is None else current_app.make_response(made)


def _write(request: Request, response: Response | None, fields: list[Field]) -> None:
    if response is None:

        @after_this_request
        def write_later(later: Response) -> Response:
            if request.environ.get(ROUTE_FIELDS) is not None:  # limits inside may have told tighter ones since
                _write(request, later, tightest(request.environ[ROUTE_FIELDS]))
            return later

        return
    for name, value in as_text(fields):
        response.headers[name] = value


def _status_of_error(error: Exception) -> int:
    return error.code or 500 if isinstance(error, HTTPException) else 500


def _user(request: Request) -> Any:
    return g.get("user") or request.environ.get("REMOTE_USER")


def _body(request: Request, max_bytes: int) -> bytes | None:
    length = request.content_length
    return request.get_data() if length is not None and length <= max_bytes else None


REQUESTS = ENVIRONS.inside(lambda request: request.environ, user=_user, body=_body)
CALLS = EndpointCalls(
    request_of=lambda args, kwargs: request._get_current_object(),  # type: ignore[attr-defined]  # no proxy any more
    state_of=lambda request: request.environ,
    method_of=lambda request: request.method,
    refuse=_refuse,
    refuse_nameless=_refuse_nameless,
    to_response=_to_response,
    status_of=lambda request, response: 200 if response is None else response.status_code,
    status_of_error=_status_of_error,
    write=_write,
)

limited = RateLimits().limited
