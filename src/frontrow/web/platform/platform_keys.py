"""The keys that places, passes and tickets are signed with.

Embedded they are files in the folder. On shared stores every server must have the same ones, so they are in the ledger,
sealed with a key made from `secret.key`: the first server to start puts them there (its folder's, if it has any), all
others take them from there. A server with another secret key cannot open them and does not start.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from frontrow.boxoffice.adapters.ledger.books.platform_keys import KeyBook
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.core.errors import ConfigError, Refused
from frontrow.core.vault import SealBroken, Vault
from frontrow.settings.platform import PlatformSettings
from frontrow.waitingroom.credentials.room_keys import RoomKeys

ROOM: Final = "room"
TICKETS: Final = "tickets"
RING_FILE: Final = "ticket-keys.json"
Keys = TypeVar("Keys", RoomKeys, TicketKeys)


class PlatformKeys(NamedTuple):
    """Both rings of one platform."""

    room: RoomKeys
    tickets: TicketKeys


async def open_keys(settings: PlatformSettings, ledger: SqlLedger, sealing_key: bytes, now_us: int) -> PlatformKeys:
    """The platform's keys, made on its first start."""
    folder = settings.folder
    if not settings.shared:
        return PlatformKeys(RoomKeys.load(folder / "room"), TicketKeys.opened(folder / RING_FILE))
    kept = _Sealed(ledger.keys, Vault([sealing_key]), now_us)

    def room() -> RoomKeys:
        there = (folder / "room" / "master.key").exists()
        return RoomKeys.load(folder / "room") if there else RoomKeys.generate()

    def tickets() -> TicketKeys:
        path = folder / RING_FILE
        return TicketKeys.opened(path) if path.exists() else TicketKeys.fresh()

    return PlatformKeys(
        await kept.opened(ROOM, room, RoomKeys.unpacked), await kept.opened(TICKETS, tickets, TicketKeys.unpacked)
    )


async def rotate_keys(ledger: SqlLedger, sealing_key: bytes, now_us: int) -> None:
    """New signing keys in the ledger; servers sign with them after their next start. What older keys signed stays
    valid: tickets for ever, places and passes through two rotations."""
    kept = _Sealed(ledger.keys, Vault([sealing_key]), now_us)
    await kept.changed(ROOM, lambda text: RoomKeys.unpacked(text).rotated().packed())
    await kept.changed(TICKETS, lambda text: TicketKeys.unpacked(text).rotated().packed())


class _Sealed:
    """Keys in the ledger, opened with the secret key."""

    def __init__(self, book: KeyBook, vault: Vault, now_us: int) -> None:
        self._book, self._vault, self._now_us = book, vault, now_us

    async def opened(self, name: str, make: Callable[[], Keys], unpacked: Callable[[str], Keys]) -> Keys:
        sealed = await self._book.find(name)
        if sealed is None:
            sealed = await self._book.add(name, self._seal(name, make().packed()), self._now_us)
        return unpacked(self._open(name, sealed))

    async def changed(self, name: str, change: Callable[[str], str]) -> None:
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
