"""What people send to the room: bodies as JSON or as a browser's form, keys and passes in headers."""

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec

from frontrow.core.errors import Forbidden, InvalidInput
from frontrow.web.http import messages
from frontrow.web.http.messages import EndpointRequest
from frontrow.web.http.request_bodies import check_size, decode_body, is_form

Body = TypeVar("Body")


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


def read_join_body(request: EndpointRequest) -> JoinBody:
    return _read_body(request, _decode_join, JoinBody) if request.body else NO_JOIN


def read_claim_body(request: EndpointRequest) -> ClaimBody:
    return _read_body(request, _decode_claim, ClaimBody) if request.body else NO_CLAIM


def _read_body(request: EndpointRequest, decode: Callable[[bytes], Body], kind: type[Body]) -> Body:
    check_size(request)
    return _read_form(request, kind) if is_form(request) else decode_body(decode, request.body)


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


def idempotency_key(request: EndpointRequest) -> str | None:
    return messages.idempotency_key(request, param="idempotency-key")
