"""What people send to the room: bodies as JSON or as a browser's form, keys and passes in headers."""

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec

from frontrow.core.errors import Forbidden, InvalidInput, Unauthorised
from frontrow.waitingroom.protect.guard import PASS_COOKIES, pass_from
from frontrow.web.endpoints import messages
from frontrow.web.endpoints.messages import MAX_BODY_BYTES, EndpointRequest

Body = TypeVar("Body")


class BodyTooLarge(InvalidInput):
    code = "body_too_large"
    http_status = 413


class JoinBody(msgspec.Struct, forbid_unknown_fields=True):
    """What may be sent with a join; all of it optional."""

    proof: str | None = None
    code: str | None = None
    person: str = ""
    cnf: str | None = None
    page: bool = False  # sent by our page: the place goes into a cookie
    wish: str = ""  # the page of the shop to go to afterwards


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    proof: str | None = None
    page: bool = False
    wish: str = ""


_decode_join = msgspec.json.Decoder(JoinBody).decode
_decode_claim = msgspec.json.Decoder(ClaimBody).decode
_WIDGET_FIELDS = ("altcha", "cf-turnstile-response", "h-captcha-response")  # what the providers' widgets send
NO_JOIN, NO_CLAIM = JoinBody(), ClaimBody()


def check_size(request: EndpointRequest) -> None:
    if len(request.body) > MAX_BODY_BYTES:
        raise BodyTooLarge(f"the body is over {MAX_BODY_BYTES} bytes")


def read_join_body(request: EndpointRequest) -> JoinBody:
    return _read_body(request, _decode_join, JoinBody) if request.body else NO_JOIN


def read_claim_body(request: EndpointRequest) -> ClaimBody:
    return _read_body(request, _decode_claim, ClaimBody) if request.body else NO_CLAIM


def _read_body(request: EndpointRequest, decode: Callable[[bytes], Body], kind: type[Body]) -> Body:
    check_size(request)
    return _read_form(request, kind) if is_form(request) else decode_body(decode, request.body)


def decode_body(decode: Callable[[bytes], Body], body: bytes) -> Body:
    """A JSON body, or the refusal that says what is wrong with it."""
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not what is expected here: {error}", param="body") from None


def _read_form(request: EndpointRequest, kind: type[Body]) -> Body:
    """The fields of a browser's form as the body an endpoint expects. A form of another site is refused."""
    site = request.header(b"sec-fetch-site")
    if site is not None and site not in (b"same-origin", b"none"):
        raise Forbidden("this form came from another site")
    fields = parse_qs(request.body.decode("utf-8", "replace"), max_num_fields=20)
    values: dict[str, Any] = {name: given[0] for name, given in fields.items() if given[0]}
    for name in _WIDGET_FIELDS:
        if values.pop(name, None):
            values["proof"] = fields[name][0]
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"the form is not what is expected here: {error}", param="body") from None


def is_form(request: EndpointRequest) -> bool:
    kind = request.header(b"content-type")
    return kind is not None and kind.lower().startswith(b"application/x-www-form-urlencoded")


def idempotency_key(request: EndpointRequest) -> str | None:
    return messages.idempotency_key(request, param="idempotency-key")


def pass_of(request: EndpointRequest, *, secure: bool) -> str:
    headers = [request.header(name) for name in (b"authorization", b"frontrow-pass", b"cookie")]
    bearer, header, cookie = (value.decode("latin-1") if value is not None else None for value in headers)
    text = pass_from(bearer, header, cookie, secure=secure)
    if not text:
        raise Unauthorised(f"send the pass as a bearer token or in the cookie {PASS_COOKIES[0 if secure else 1]}")
    return text
