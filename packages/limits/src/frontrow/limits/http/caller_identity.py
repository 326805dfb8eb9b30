"""Who sends a request, according to the application: the sources of the key parts `user`, `api_key` and custom ones.

A `RequestSource` says how to read one kind of request: an ASGI scope, a WSGI environ or a framework's own object. The
functions that users give (`identify`, `tier_of`, `exempt_if`) may be async where the server can wait. `run_steps` and
`arun_steps` drive the same generator for both worlds: it yields what a function returned and gets the value back.
"""

import inspect
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from frontrow.core.errors import ConfigError
from frontrow.limits.http.body_parts import BodyPart, body_part
from frontrow.limits.http.client_address import ClientAddress
from frontrow.limits.keys import key_text
from frontrow.limits.quota import InvalidKey

T = TypeVar("T")
Getter = Callable[[Any], str | None]
Source = str | BodyPart | Callable[[Any], Any]
Steps = Generator[Any, Any, T]
IN_BODY = ("json", "form", "post")


@dataclass(frozen=True, slots=True)
class RequestSource:
    """How to read one kind of request."""

    peer: Getter
    forwarded: Callable[[Any], Sequence[str]]  # the values of X-Forwarded-For
    header: Callable[[str], Getter]
    user: Callable[[Any], Any]  # what the framework's authentication left behind
    body: Callable[[Any, int], Any]  # the whole body, unless it is longer than so many bytes; may be async
    can_wait: bool  # whether functions of the request may be async

    def inside(
        self,
        unwrap: Callable[[Any], Any],
        *,
        user: Callable[[Any], Any],
        body: Callable[[Any, int], Any] = lambda request, max_bytes: None,
    ) -> "RequestSource":
        """The source of a framework's requests, which contain requests of this kind."""
        return RequestSource(
            lambda request: self.peer(unwrap(request)),
            lambda request: self.forwarded(unwrap(request)),
            lambda name: _inside(self.header(name), unwrap),
            user,
            body,
            self.can_wait,
        )


def _inside(get: Getter, unwrap: Callable[[Any], Any]) -> Getter:
    return lambda request: get(unwrap(request))


def part_of_source(source: str) -> str:
    """The name of the part that a source like `post:username` has, where it stands in the place of a part."""
    return re.sub(r"\W", "_", source.strip())


class CallerIdentity:
    """Reads the parts of a key. `getters` need no waiting. `functions` are the user's: they may return an awaitable."""

    def __init__(
        self, source: RequestSource, identify: Mapping[str, Source], clients: ClientAddress, max_body_bytes: int
    ) -> None:
        self._max_body_bytes = max_body_bytes
        key = source.header("x-api-key")
        self.address = _address(source, clients)
        self.getters: dict[str, Getter] = {
            "ip": _ip(source, clients),
            "user": lambda request: user_name(source.user(request)),
            "api_key": lambda request: secret_key(key(request)),
        }
        self.functions: dict[str, Callable[[Any], Any]] = {}
        self.in_body: set[str] = set()
        self._sources = {part: given for part, given in identify.items() if isinstance(given, str)}
        for part, given in identify.items():
            self._add(part, given, source)

    def _add(self, part: str, given: Source, source: RequestSource) -> None:
        if not part.isidentifier() or part in ("endpoint", "path", "ip"):
            message = f"identify: {part!r} cannot be set; name a part like user or tenant (ip follows trusted_proxies)"
            raise ConfigError(message, param="identify")
        self.getters.pop(part, None)
        kind, _, name = given.partition(":") if isinstance(given, str) else ("", "", "")
        if isinstance(given, BodyPart) or (kind in IN_BODY and name.strip()):
            self._add_body_part(part, given, source)
        elif kind == "header" and name.strip():
            self.getters[part] = source.header(name.strip())
        elif callable(given):
            check_can_wait(f"identify: {part}", given, source.can_wait)
            self.functions[part] = given
        else:
            forms = 'a function of the request or "header:x-user-id", "post:email", "json:user.email", "form:email"'
            raise ConfigError(f"identify: {part} must be {forms}, not {given!r}", param="identify")

    def _add_body_part(self, part: str, given: Source, source: RequestSource) -> None:
        body_of, max_bytes, content_type = source.body, self._max_body_bytes, source.header("content-type")
        kind, _, name = ("", "", "") if isinstance(given, BodyPart) else str(given).partition(":")
        read_part = body_part(kind, name.strip())

        def read(request: Any, body: bytes | None) -> str | None:
            if not body:
                return None
            found = given.read(body) if isinstance(given, BodyPart) else read_part(body, content_type(request) or "")
            return text_of(part, found)

        if is_async(body_of):

            async def read_later(request: Any) -> str | None:
                return read(request, await body_of(request, max_bytes))

            self.functions[part] = read_later
        else:
            self.getters[part] = lambda request: read(request, body_of(request, max_bytes))
            self.in_body.add(part)

    def told_as(self, part: str) -> tuple[str, str]:
        """What a client is told of a part, in words and as a name. A source in the place of a part, like
        `post:username`, is a field or header that the client can find."""
        source = self._sources.get(part, "")
        if part != part_of_source(source):
            return part, part
        kind, _, name = source.partition(":")
        return f"{'header' if kind == 'header' else 'field'} {name.strip()}", name.strip()

    @property
    def parts(self) -> set[str]:
        """The parts that a key can have."""
        return {*self.getters, *self.functions, "endpoint", "path"}

    def steps(self, part: str, request: Any) -> Steps[str | None]:
        """Read one part."""
        if part in self.functions:
            value = yield self.functions[part](request)
            return text_of(part, value)
        return self.getters[part](request)


def _ip(source: RequestSource, clients: ClientAddress) -> Getter:
    direct, peer_of = clients.direct, source.peer

    def peer_only(request: Any) -> str | None:
        peer = peer_of(request)
        return direct(peer) if peer else None

    def behind_proxies(request: Any) -> str | None:
        peer = peer_of(request)
        if not clients.is_proxy(peer):
            return direct(peer) if peer else None
        return clients.key(peer, source.forwarded(request))

    return peer_only if clients.trusts_nobody else behind_proxies


def _address(source: RequestSource, clients: ClientAddress) -> Getter:
    return lambda request: clients.address(source.peer(request), source.forwarded(request))


def text_of(part: str, value: Any) -> str | None:
    """The text of a part. An object without a text of its own would be somebody else in every request: an error."""
    if value is None or type(value) is str:
        return value
    text = key_text(value)
    if text is None:
        message = f"{part} must be a text, a whole number or an object with __str__, like '42' or user.id"
        raise InvalidKey(f"{message}; not {value!r:.80}", param=part)
    return text


def is_in_body(source: Any) -> bool:
    """Whether a part with this source is read from the body."""
    return isinstance(source, BodyPart) or (isinstance(source, str) and source.partition(":")[0] in IN_BODY)


def is_async(function: Any) -> bool:
    """Whether calling this is known to return a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def check_can_wait(what: str, function: Any, can_wait: bool) -> None:
    """Raise if `function` is async where nothing can wait for it."""
    if not can_wait and is_async(function):
        raise ConfigError(f"{what} is async, and nothing waits for it here; give a plain function, or use ASGI")


def run_steps(steps: Steps[T]) -> T:
    """Run the steps. An awaitable is an error, because nothing can wait for it."""
    try:
        value = next(steps)
        while True:
            if inspect.isawaitable(value):
                if inspect.iscoroutine(value):
                    value.close()
                message = f"a function of the request returned {value!r:.80}, and nothing waits for it here"
                raise ConfigError(f"{message}; give a function that returns the value itself, or use ASGI")
            value = steps.send(value)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def arun_steps(steps: Steps[T]) -> T:
    """Run the steps, and wait for what is awaitable."""
    try:
        value = next(steps)
        while True:
            value = steps.send(await value if inspect.isawaitable(value) else value)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def user_name(user: Any) -> str | None:
    """The id of the user object that the framework's authentication set: text, a number, or an object with an id."""
    if user is None or isinstance(user, str):
        return user
    if isinstance(user, int):
        return str(user)
    if getattr(user, "is_authenticated", True) is False:
        return None
    for attribute in ("identity", "id", "pk", "username"):
        try:
            value = getattr(user, attribute, None)
        except NotImplementedError:  # Starlette's BaseUser leaves `identity` to its subclasses
            continue
        if value is not None and value != "":
            return text_of("user", value)
    return None


def secret_key(secret: str | None) -> str | None:
    """A digest of an API key, so that no store ever holds the key itself."""
    return blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if secret else None
