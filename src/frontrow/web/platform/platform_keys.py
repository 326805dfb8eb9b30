"""The keys that places, passes and tickets are signed with.

Embedded they are files in the folder. On shared stores every server must have the same ones, so they are in the ledger,
sealed with a key made from `secret.key`: the first server to start puts them there (its folder's, if it has any), all
others take them from there. A server with another secret key cannot open them and does not start.
"""

from typing import NamedTuple

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.settings.platform import PlatformSettings
from frontrow.shared.vault import Vault
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.web.platform.sealed_keys import ROOM, TICKETS, SealedKeys


class PlatformKeys(NamedTuple):
    """Both rings of one platform."""

    room: RoomKeys
    tickets: TicketKeys


async def open_keys(settings: PlatformSettings, ledger: SqlLedger, sealing_key: bytes, now_us: int) -> PlatformKeys:
    """The platform's keys, made on its first start."""
    folder = settings.folder
    if not settings.shared:
        return PlatformKeys(RoomKeys.load(folder / "room"), TicketKeys.opened(settings.deployment.ticket_keys))
    kept = SealedKeys(ledger.keys, Vault([sealing_key]), now_us)

    def room() -> RoomKeys:
        there = (folder / "room" / "master.key").exists()
        return RoomKeys.load(folder / "room") if there else RoomKeys.generate()

    def tickets() -> TicketKeys:
        path = settings.deployment.ticket_keys
        return TicketKeys.opened(path) if path.exists() else TicketKeys.fresh()

    return PlatformKeys(
        await kept.opened(ROOM, room, RoomKeys.unpacked), await kept.opened(TICKETS, tickets, TicketKeys.unpacked)
    )


async def rotate_keys(ledger: SqlLedger, sealing_key: bytes, now_us: int) -> None:
    """New signing keys in the ledger; servers sign with them after their next start. What older keys signed stays
    valid: tickets for ever, places and passes through two rotations."""
    kept = SealedKeys(ledger.keys, Vault([sealing_key]), now_us)
    await kept.changed(ROOM, lambda text: RoomKeys.unpacked(text).rotated().packed())
    await kept.changed(TICKETS, lambda text: TicketKeys.unpacked(text).rotated().packed())
