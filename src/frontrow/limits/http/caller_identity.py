"""Who sends a request, according to the application: the sources of the key parts `user`, `api_key` and custom ones."""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.limits.keys import key_text
from frontrow.limits.quota import InvalidKey

Getter = Callable[[Any], str | None]


def make_getters(
    standard: Mapping[str, Getter], identify: Mapping[str, str | Callable[[Any], Any]], header: Callable[[str], Getter]
) -> dict[str, Getter]:
    """The standard parts, overridden by those of `identify`: functions of the request, or `"header:x-user-id"`."""
    getters = dict(standard)
    for part, source in identify.items():
        if not part.isidentifier() or part in ("endpoint", "path", "ip"):
            message = f"identify: {part!r} cannot be set; name a part like user or tenant (ip follows trusted_proxies)"
            raise ConfigError(message, param="identify")
        if callable(source):
            getters[part] = _as_text(part, source)
        elif isinstance(source, str) and source.startswith("header:") and len(source) > 7:
            getters[part] = header(source[7:].strip())
        else:
            message = f'identify: {part} must be a function of the request or "header:x-user-id", not {source!r}'
            raise ConfigError(message, param="identify")
    return getters


def _as_text(part: str, source: Callable[[Any], Any]) -> Getter:
    def get(request: Any) -> str | None:
        value = source(request)
        return value if value is None or type(value) is str else _text_of(part, value)

    return get


def _text_of(part: str, value: object) -> str:
    text = key_text(value)
    if text is None:
        message = f"{part} must be a text, a whole number or an object with __str__, like '42' or user.id"
        raise InvalidKey(f"{message}; not {value!r:.80}", param=part)
    return text


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
            return _text_of("user", value)
    return None


def secret_key(secret: str | None) -> str | None:
    """A digest of an API key, so that no store ever holds the key itself."""
    return blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if secret else None
