"""Key parts from the body, like the e-mail address of a sign-in: `identify={"email": "post:email"}`.

`json:` and `form:` read one kind of body, `post:` reads what the content type says: a form or JSON.

The body is read up to a bound and then replayed, so the application reads it as if nobody had. A longer body, or one
that cannot be read, has no parts: then the rule's `on_missing` decides. A field that is sent twice is ambiguous and
counts as missing, as a header does.
"""

import io
import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import parse_qs

DEFAULT_MAX_BODY_BYTES = 65_536
MAX_BODY_MESSAGES = 1024  # a body in more pieces than this is treated like one that is too long
MAX_FORM_FIELDS = 256
BODY = "frontrow.limits.body"

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class BodyPart:
    """A key part that a function reads from the body's bytes: `BodyPart(lambda body: body[:8].hex())`."""

    read: Callable[[bytes], Any]


def body_part(kind: str, name: str) -> Callable[[bytes, str], str | None]:
    """Reads `user.email` of a JSON body, a field of an HTML form, or either by the content type."""
    read_json, read_form = _json_reader(name.split(".")), _form_reader(name)
    if kind != "post":
        read_one = read_json if kind == "json" else read_form
        return lambda body, content_type: read_one(body)

    def read(body: bytes, content_type: str) -> str | None:
        kind = content_type.partition(";")[0].strip().lower()
        if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
            return read_json(body)
        return read_form(body) if kind == "application/x-www-form-urlencoded" else None

    return read


def _json_reader(path: list[str]) -> Callable[[bytes], str | None]:
    def read(body: bytes) -> str | None:
        try:
            value = json.loads(body, object_pairs_hook=_once)
        except (ValueError, RecursionError):
            return None
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value.strip()
        return str(value) if type(value) is int else None

    return read


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is there twice")
    return fields


def _form_reader(name: str) -> Callable[[bytes], str | None]:
    def read(body: bytes) -> str | None:
        try:
            values = parse_qs(body.decode(), max_num_fields=MAX_FORM_FIELDS).get(name, [])
        except ValueError:
            return None
        return values[0].strip() if len(values) == 1 else None

    return read


async def read_asgi_body(scope: MutableMapping[str, Any], receive: Receive, max_bytes: int) -> Receive:
    """Put the body into the scope, if it is short enough. The returned `receive` gives it to the application again."""
    messages: deque[MutableMapping[str, Any]] = deque()
    size, complete = 0, False
    while not complete and size <= max_bytes and len(messages) < MAX_BODY_MESSAGES:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":  # the client has gone
            break
        size += len(message.get("body", b""))
        complete = not message.get("more_body", False)
    if complete and size <= max_bytes:
        scope[BODY] = b"".join(message.get("body", b"") for message in messages)

    async def replay() -> MutableMapping[str, Any]:
        return messages.popleft() if messages else await receive()

    return replay


def read_wsgi_body(environ: dict[str, Any], max_bytes: int) -> None:
    """Put the body into the environ, if it is short enough. The application can read it again from `wsgi.input`."""
    stated = str(environ.get("CONTENT_LENGTH") or "")
    if stated.isdecimal():
        length = int(stated)
        if length > max_bytes:
            return
        body = environ["wsgi.input"].read(length)
        environ["wsgi.input"] = io.BytesIO(body)
        environ[BODY] = body
    elif environ.get("wsgi.input_terminated"):  # without a length, only such a server says where the body ends
        rest = environ["wsgi.input"]
        body = rest.read(max_bytes + 1)
        environ["wsgi.input"] = io.BufferedReader(_Replayed(body, rest))
        if len(body) <= max_bytes:
            environ[BODY] = body


class _Replayed(io.RawIOBase):
    """What was read already, then the rest."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(found) :]
        buffer[: len(found)] = found
        return len(found)
