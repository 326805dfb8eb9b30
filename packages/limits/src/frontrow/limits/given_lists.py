"""Reads what people give as a list. A text in its place would be read letter by letter, so it is an error."""

from collections.abc import Iterable
from typing import TypeVar

from frontrow.core.errors import ConfigError

T = TypeVar("T")


def to_list(name: str, given: Iterable[T], where: str = "") -> list[T]:
    """The items of `given`, unless it is a text or nothing that has items."""
    at = f"{where}: " if where else ""
    if isinstance(given, str | bytes):
        raise ConfigError(f"{at}{name} must be a list, like [{given!r}], not the text {given!r}", param=name)
    if not isinstance(given, Iterable):
        raise ConfigError(f"{at}{name} must be a list, like [{given!r:.80}], not {given!r:.80}", param=name)
    return list(given)
