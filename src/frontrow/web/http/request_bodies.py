"""Request bodies: their size, JSON that is checked while it is read, and whether a browser's form was sent."""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.web.http.messages import MAX_BODY_BYTES, EndpointRequest

MAX_REQUEST_BYTES: Final = 1024 * 1024  # endpoints of the fast path allow less (`http.messages`)
MAX_PLAN_BYTES: Final = 16 * 1024 * 1024  # a pretix plan of 50,000 seats has about 12 MB
Body = TypeVar("Body")


class BodyTooLarge(InvalidInput):
    code = "body_too_large"
    http_status = 413


def check_size(request: EndpointRequest) -> None:
    if len(request.body) > MAX_BODY_BYTES:
        raise BodyTooLarge(f"the body is over {MAX_BODY_BYTES} bytes")


def decode_body(decode: Callable[[bytes], Body], body: bytes) -> Body:
    """A JSON body, or the refusal that says what is wrong with it."""
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not what is expected here: {error}", param="body") from None


def is_form(request: EndpointRequest) -> bool:
    kind = request.header(b"content-type")
    return kind is not None and kind.lower().startswith(b"application/x-www-form-urlencoded")
