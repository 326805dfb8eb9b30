"""The routes of the HTTP interface: what each path answers. docs/limits-service.md describes them."""

import base64
import binascii
import hmac
import urllib.parse
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.limits.http.headers import Field, retry_s, whole
from frontrow.limits.quota import Decision
from frontrow.limits.stores.protocol import CHARGE, CHECK, PEEK, REFUND, StoreResult
from frontrow.limits_service.http_connection import (
    JSON,
    Handler,
    Request,
    Response,
    problem_response,
)
from frontrow.limits_service.limit_service import LimitService
from frontrow.limits_service.limit_stores import Charge
from frontrow.limits_service.request_bodies import BatchBody, CheckBody, LeaseBody, ReturnBody, read_body, reader

OPERATIONS = {"/v1/check": CHECK, "/v1/peek": PEEK, "/v1/refund": REFUND, "/v1/charge": CHARGE}
LEASES = "/v1/leases"
_check, _batch, _lease, _return = reader(CheckBody), reader(BatchBody), reader(LeaseBody), reader(ReturnBody)
_encode = msgspec.json.Encoder().encode
_CHALLENGE: Field = (b"www-authenticate", b'Bearer realm="frontrow-limits", Basic realm="frontrow-limits"')
Later = Response | Awaitable[Response]
Trace = Callable[[Request, Later], Later]


class HttpRoutes:
    """Answers the requests of the HTTP interface."""

    def __init__(self, service: LimitService, pages: dict[str, Handler], trace: Trace | None = None) -> None:
        """`pages` are further GET routes: health, metrics, the most refused keys."""
        self._service = service
        self._token = service.settings.token.encode()
        self._pages = pages
        self._trace = trace

    def handle(self, request: Request) -> Later:
        """The answer to a request, or something to wait for."""
        answer = self._route(request)
        if self._trace is not None and b"traceparent" in request.headers:
            return self._trace(request, answer)
        return answer

    def _route(self, request: Request) -> Later:
        path = request.path
        if self._token and path not in ("/healthz", "/readyz") and not self._knows_token(request):
            detail = "this service needs its token: Authorization: Bearer …, or as password of Basic"
            return problem_response(401, "unauthorised", detail, [_CHALLENGE])
        page = self._pages.get(path)
        if page is not None:
            if request.method not in (b"GET", b"HEAD"):
                return _wrong_method(b"GET, HEAD")
            return page(request)
        operation = OPERATIONS.get(path)
        is_lease = path == LEASES or path.startswith(f"{LEASES}/")
        if operation is None and path != "/v1/batch" and not is_lease:
            raise NotFound(f"there is no {path[:100]}; see docs/limits-service.md", param="path")
        if request.method != b"POST":
            return _wrong_method(b"POST")
        if not request.headers.get(b"content-type", b"").lower().startswith(b"application/json"):
            return problem_response(415, "not_json", "send JSON, with content-type: application/json")
        if operation is not None:
            return self._operate(operation, request.body)
        if is_lease:
            return self._lease(path, request.body)
        return self._decide_batch(request.body)

    def _knows_token(self, request: Request) -> bool:
        kind, _, given = request.headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"basic":
            try:
                given = base64.b64decode(given.strip(), validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif kind.lower() != b"bearer":
            return False
        return hmac.compare_digest(given.strip(), self._token)

    # -- check, peek, refund, charge -------------------------------------------------------------------------------

    def _operate(self, operation: int, raw: bytes) -> Later:
        charge = self._service.bodies.charge(read_body(_check, raw))
        result = self._service.decide(charge, operation)
        if isinstance(result, StoreResult):
            return self._tell(operation, charge, result)
        return self._tell_later(operation, charge, result)

    async def _tell_later(self, operation: int, charge: Charge, result: Awaitable[StoreResult]) -> Response:
        return self._tell(operation, charge, await result)

    def _tell(self, operation: int, charge: Charge, result: StoreResult) -> Response:
        decision = result.decision
        fields = self._service.headers(charge, decision)
        body = _encode(decision_body(charge, result))
        if operation != CHECK or decision.allowed:
            return Response(200, body, (JSON, *fields))
        return Response(429, body, (JSON, (b"retry-after", whole(retry_s(decision))), *fields))

    # -- batches ---------------------------------------------------------------------------------------------------

    def _decide_batch(self, raw: bytes) -> Later:
        checks = read_body(_batch, raw).checks
        most = self._service.settings.max_batch
        if not 1 <= len(checks) <= most:
            raise InvalidInput(f"a batch has 1 to {most} checks, not {len(checks)}", param="checks")
        found: list[Charge | FrontrowError] = []
        for check in checks:
            try:
                found.append(self._service.bodies.charge(check))
            except FrontrowError as error:
                found.append(error)
        charges = [each for each in found if isinstance(each, Charge)]
        if all(charge.of.is_memory for charge in charges):
            return _batch_response(found, [self._service.decide(charge) for charge in charges])
        return self._decide_later(found, charges)

    async def _decide_later(self, found: Sequence[Charge | FrontrowError], charges: Sequence[Charge]) -> Response:
        return _batch_response(found, await self._service.check_each(charges))

    # -- leases ----------------------------------------------------------------------------------------------------

    def _lease(self, path: str, raw: bytes) -> Later:
        if path == LEASES:
            return self._take_lease(read_body(_lease, raw))
        lease_id, _, verb = path.removeprefix(f"{LEASES}/").partition("/")
        if verb != "return" or not lease_id:
            raise NotFound("a lease is given back with POST /v1/leases/{lease}/return", param="path")
        return self._return_lease(lease_id, read_body(_return, raw).used)

    async def _take_lease(self, body: LeaseBody) -> Response:
        settings = self._service.settings
        if not 1 <= body.cost <= settings.max_lease_units:
            raise InvalidInput(f"cost must be from 1 to {settings.max_lease_units} units", param="cost")
        if not 0 < body.ttl_s <= settings.max_lease_s:
            raise InvalidInput(f"ttl_s must be more than 0 and at most {settings.max_lease_s:g}", param="ttl_s")
        at_least = body.cost if body.at_least is None else body.at_least
        if not 1 <= at_least <= body.cost:
            raise InvalidInput("at_least must be from 1 to cost", param="at_least")
        charge = self._service.bodies.charge(body)
        lease_id, lease, decision = await self._service.take_lease(charge, body.ttl_s, at_least)
        if lease is None:
            return self._tell(CHECK, charge, StoreResult(decision))
        told = {"lease": lease_id, "units": lease.units, "expires_in_s": body.ttl_s}
        fields = self._service.headers(charge, decision)
        return Response(201, _encode(told | decision_body(charge, StoreResult(decision))), (JSON, *fields))

    async def _return_lease(self, lease_id: str, used: int) -> Response:
        decision = await self._service.return_lease(lease_id, used)
        return Response(200, _encode(_plain(decision)))


def _plain(decision: Decision) -> dict[str, Any]:
    allowed, rule, limit, remaining, reset_us, retry_us, delay_us, source = decision
    return {
        "allowed": allowed,
        "rule": rule,
        "limit": limit,
        "remaining": remaining,
        "reset_after_s": reset_us / 1e6,
        "retry_after_s": retry_us / 1e6,
        "delay_s": delay_us / 1e6,
        "source": source,
    }


def decision_body(charge: Charge, result: StoreResult) -> dict[str, Any]:
    """A decision as JSON. `shadowed` names the shadow rules that would have refused."""
    body = _plain(result.decision)
    if result.shadowed:
        body["shadowed"] = [charge.of.slots[charge.slots[at]].rule.name for at in result.shadowed]
    return body


def _batch_response(found: Sequence[Charge | FrontrowError], results: Sequence[Any]) -> Response:
    """The results in the order of the checks, with what is wrong in place of those that were not decided."""
    left = iter(results)
    rows = [
        decision_body(each, next(left)) if isinstance(each, Charge) else {"error": each.code, "detail": each.message}
        for each in found
    ]
    return Response(200, _encode({"results": rows}))


def _wrong_method(allowed: bytes) -> Response:
    detail = f"this path takes {allowed.decode()}"
    return problem_response(405, "method_not_allowed", detail, [(b"allow", allowed)])


def query_number(request: Request, name: str, default: int, high: int) -> int:
    """A whole number of the query, from 1 to `high`."""
    given = urllib.parse.parse_qs(request.query[:4096], max_num_fields=20).get(name, [str(default)])[0]
    if not given.isascii() or not given.isdecimal() or len(given) > 9 or not 1 <= int(given) <= high:
        raise InvalidInput(f"{name} must be a whole number from 1 to {high}", param=name)
    return int(given)
