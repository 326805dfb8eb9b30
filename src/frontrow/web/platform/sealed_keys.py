"""Keys in the ledger, sealed with a key that is made from `secret.key`."""

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from frontrow.boxoffice.adapters.ledger.keys.platform_keys import KeyBook
from frontrow.core.errors import ConfigError, Refused
from frontrow.shared.vault import SealBroken, Vault

ROOM: Final = "room"
TICKETS: Final = "tickets"


class Packable(Protocol):
    """Keys that can be written as one text."""

    def packed(self) -> str: ...


Keys = TypeVar("Keys", bound=Packable)


class SealedKeys:
    """Keys in the ledger, opened with the secret key."""

    def __init__(self, book: KeyBook, vault: Vault, now_us: int) -> None:
        self._book, self._vault, self._now_us = book, vault, now_us

    async def find(self, name: str) -> str | None:
        """The text of the keys with this name, if the ledger has them."""
        sealed = await self._book.find(name)
        return self._open(name, sealed) if sealed is not None else None

    async def opened(self, name: str, make: Callable[[], Keys], unpacked: Callable[[str], Keys]) -> Keys:
        """The keys with this name, made now if there are none."""
        sealed = await self._book.find(name)
        if sealed is None:
            sealed = await self._book.add(name, self._seal(name, make().packed()), self._now_us)
        return unpacked(self._open(name, sealed))

    async def changed(self, name: str, change: Callable[[str], str]) -> None:
        """Replace the keys by changed ones."""
        was = await self._book.find(name)
        if was is None:
            raise ConfigError("this ledger holds no keys yet: start a server on it first", param="ledger.url")
        if not await self._book.swap(name, was, self._seal(name, change(self._open(name, was))), self._now_us):
            raise Refused(f"the {name} keys were changed by somebody else at the same time")

    def _seal(self, name: str, text: str) -> str:
        return self._vault.seal(text, f"keys:{name}")

    def _open(self, name: str, sealed: str) -> str:
        try:
            return self._vault.open(sealed, f"keys:{name}")
        except SealBroken:
            raise ConfigError(
                "secret.key is not the one this ledger's keys were sealed with; every server of one platform needs "
                "the same",
                param="secret.key",
            ) from None
