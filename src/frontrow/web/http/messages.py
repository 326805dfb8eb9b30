"""The requests and responses of the endpoints, on the fast path and behind the framework.

An endpoint turns an `EndpointRequest` into an `EndpointResponse` and knows neither Litestar nor the fast path, so both
give the same responses byte for byte. A response's header block is bytes from the start: most are constants.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Protocol

import msgspec

from frontrow.core.errors import FrontrowError, InvalidInput, Unavailable

MAX_BODY_BYTES = 16 * 1024
MAX_KEY_CHARS = 128  # of an Idempotency-Key

Headers = Sequence[tuple[bytes, bytes]]

JSON = b"content-type: application/json\r\n"
PROBLEM = b"content-type: application/problem+json\r\n"
HTML = b"content-type: text/html; charset=utf-8\r\n"
NO_STORE = b"cache-control: no-store\r\n"
JSON_HEAD = JSON + NO_STORE
SHARED_CACHE = b"cache-control: public, max-age=0, s-maxage=1\r\n"  # the same for everybody: one request per second

encode_json = msgspec.json.Encoder().encode


class EndpointRequest(msgspec.Struct, gc=False):
    """One request: headers as received (names in any case), body, the peer's address and the query."""

    headers: Headers
    body: bytes
    peer: str
    query: bytes = b""

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header; `name` in lower case."""
        length = len(name)
        for key, value in self.headers:
            if len(key) == length and key.lower() == name:
                return value
        return None

    def all(self, name: bytes) -> list[bytes]:
        """Every value of a header that may come several times."""
        return [value for key, value in self.headers if key.lower() == name]


class RequestHeaders:
    """The headers of an `EndpointRequest` by lower-case name, for checks that the framework makes too."""

    __slots__ = ("_values",)

    def __init__(self, request: EndpointRequest) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in request.headers:
            self._values.setdefault(name.lower(), []).append(value)

    def getall(self, key: str, default: Any) -> list[str]:
        found = self._values.get(key.encode())
        return [value.decode("latin-1") for value in found] if found else default

    def __contains__(self, key: object, /) -> bool:
        return isinstance(key, str) and key.encode() in self._values


class EndpointResponse(msgspec.Struct, gc=False):
    """A status, a block of header lines (each ended by CRLF; no length, no date) and a body."""

    status: int
    head: bytes
    body: bytes = b""

    def headers(self) -> list[tuple[str, str]]:
        """The header block as pairs, for the framework."""
        pairs = [line.split(b": ", 1) for line in self.head.split(b"\r\n") if line]
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


class ResponseMaker(Protocol):
    """Makes the response of a request that waited for a store."""

    def make_response(self, event: str, result: Any, person: str) -> EndpointResponse:
        """The response to the store's result. May raise: then `make_problem` answers."""

    def make_problem(self, error: BaseException, event: str, request: EndpointRequest) -> EndpointResponse:
        """The response to an error."""


class FutureResponse:
    """A response that is made of a future's result, without a task: the fast path waits for `future` and calls `make`
    with it when it is done. Everybody else awaits it."""

    __slots__ = ("future", "make")

    def __init__(
        self, future: "asyncio.Future[Any]", make: "Callable[[asyncio.Future[Any]], EndpointResponse]"
    ) -> None:
        self.future, self.make = future, make

    def __await__(self) -> Generator[Any, None, EndpointResponse]:
        if not self.future.done():
            try:
                yield from asyncio.wait([self.future]).__await__()
            except asyncio.CancelledError:
                self.future.cancel()
                raise
        return self.make(self.future)


class PendingResponse:
    """A response that waits for a store's reply, and the slot that the reply is put into, in one object.

    It costs no future, no task and no turn of the loop: the response is made and written when the reply comes. The fast
    path registers a callback by `then`; everybody else awaits it.
    """

    __slots__ = ("_event", "_maker", "_person", "_request", "_response", "_then")

    def __init__(self, maker: ResponseMaker, event: str, request: EndpointRequest, person: str) -> None:
        self._response: EndpointResponse | None = None
        self._then: Callable[[EndpointResponse], None] | None = None
        self._maker = maker
        self._event = event
        self._request = request
        self._person = person

    def done(self) -> bool:
        return self._response is not None

    def set_result(self, result: Any) -> None:
        """The store's reply."""
        try:
            response = self._maker.make_response(self._event, result, self._person)
        except Exception as error:
            self.set_exception(error)
            return
        self._response = response
        if self._then is not None:
            self._then(response)

    def set_exception(self, exception: BaseException) -> None:
        """The store's refusal or failure."""
        self._response = response = self._maker.make_problem(exception, self._event, self._request)
        if self._then is not None:
            self._then(response)

    def cancel(self) -> bool:
        self.set_exception(Unavailable("this server is stopping; try again", retry_after_s=1))
        return True

    def then(self, callback: Callable[[EndpointResponse], None]) -> None:
        """Call `callback` with the response, at once if it is there."""
        self._then = callback
        if self._response is not None:
            callback(self._response)

    def __await__(self) -> "Generator[Any, None, EndpointResponse]":
        future: asyncio.Future[EndpointResponse] = asyncio.get_running_loop().create_future()
        self.then(lambda response: None if future.done() else future.set_result(response))
        return (yield from future.__await__())


Result = EndpointResponse | PendingResponse | FutureResponse | Awaitable[EndpointResponse]
Endpoint = Callable[[str, EndpointRequest], Result]  # the event, and the request


async def await_answer(result: Result) -> EndpointResponse:
    """The answer, whether it is ready or still being made."""
    return result if isinstance(result, EndpointResponse) else await result


def header_line(name: str, value: str) -> bytes:
    """One header line; control characters in the value cannot start another one."""
    clean = "".join(char for char in value if char >= " " and char != "\x7f")
    return f"{name}: {clean}\r\n".encode("latin-1", "replace")


def json_answer(status: int, body: Any, head: bytes = b"") -> EndpointResponse:
    return EndpointResponse(status, JSON + NO_STORE + head, encode_json(body))


def problem_answer(error: FrontrowError, head: bytes = b"") -> EndpointResponse:
    """The error as RFC 9457 problem+json, with `Retry-After` (rounded up) and `WWW-Authenticate` where they belong."""
    if error.retry_after_s is not None:
        head += b"retry-after: %d\r\n" % max(1, -int(-error.retry_after_s // 1))
    if error.http_status == 401:
        head += b'www-authenticate: Bearer realm="frontrow"\r\n'
    body = error.problem()
    if type(error) is Unavailable and error.__cause__ is not None:
        body["detail"] = "a part of this service does not answer; try again"  # the cause names our own machines
    return EndpointResponse(error.http_status, PROBLEM + NO_STORE + head, encode_json(body))


def idempotency_key(request: EndpointRequest, *, param: str = "Idempotency-Key") -> str | None:
    """The request's Idempotency-Key, if it has one."""
    raw = request.header(b"idempotency-key")
    return None if raw is None else check_key(raw.decode("latin-1"), param)


def check_key(key: str, param: str = "Idempotency-Key") -> str:
    """Check an Idempotency-Key; `param` is its name in the error."""
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
        raise InvalidInput(f"Idempotency-Key has 1 to {MAX_KEY_CHARS} printable characters", param=param)
    return key
