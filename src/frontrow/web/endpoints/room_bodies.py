"""What people send to the room: bodies as JSON, keys and passes in headers; refused with words when wrong."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from frontrow.core.errors import InvalidInput, Unauthorised
from frontrow.waitingroom.protect.guard import PASS_COOKIES, pass_from
from frontrow.web.endpoints import messages as wire
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
    wish: str = ""  # the page of the shop somebody came for


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    proof: str | None = None
    page: bool = False
    wish: str = ""


decode_join = msgspec.json.Decoder(JoinBody).decode
decode_claim = msgspec.json.Decoder(ClaimBody).decode
NO_JOIN, NO_CLAIM = JoinBody(), ClaimBody()


def check_size(ask: EndpointRequest) -> None:
    if len(ask.body) > MAX_BODY_BYTES:
        raise BodyTooLarge(f"the body is over {MAX_BODY_BYTES} bytes")


def decoded(decode: Callable[[bytes], Body], body: bytes) -> Body:
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the body is not what is expected here: {error}", param="body") from None


def is_form(ask: EndpointRequest) -> bool:
    kind = ask.header(b"content-type")
    return kind is not None and kind.lower().startswith(b"application/x-www-form-urlencoded")


def idempotency_key(ask: EndpointRequest) -> str | None:
    return wire.idempotency_key(ask, param="idempotency-key")


def pass_of(ask: EndpointRequest, *, secure: bool) -> str:
    told = [ask.header(name) for name in (b"authorization", b"frontrow-pass", b"cookie")]
    bearer, header, cookie = (value.decode("latin-1") if value is not None else None for value in told)
    text = pass_from(bearer, header, cookie, secure=secure)
    if not text:
        raise Unauthorised(f"send the pass as a bearer token or in the cookie {PASS_COOKIES[0 if secure else 1]}")
    return text
