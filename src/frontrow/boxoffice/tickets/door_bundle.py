"""What a gate takes along: the event's public keys, its seats' names and its revocation list, in one JSON file.

The revocation list is signed with the ticket key, so a gate may take a newer one from anywhere; it only ever grows.
With rotating codes the event's secret is in the bundle: who has it can renew screenshots, but can sign no ticket.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from frontrow.boxoffice.tickets.signing_keys import TicketKeys, VerifyingKeys
from frontrow.boxoffice.tickets.ticket_codes import event_hash
from frontrow.core.errors import InvalidInput

_LIST_DOMAIN: Final = b"frontrow revocations 1\0"


class Revocations(msgspec.Struct, frozen=True):
    """The ids of an event's dead tickets as of a moment, signed."""

    event_id: str
    at_us: int
    ids: tuple[str, ...]
    kid: str
    signature: str


class Bundle(msgspec.Struct, frozen=True):
    """Everything a gate needs to check tickets of one event without a network."""

    event_id: str
    name: str
    keys: tuple[str, ...]  # public keys in hex
    revocations: Revocations
    seats: tuple[str, ...] = ()  # the seat's name by its index
    rotating_secret: str = ""

    def verifying(self) -> VerifyingKeys:
        return VerifyingKeys.of(*map(bytes.fromhex, self.keys))

    def event(self) -> bytes:
        return event_hash(self.event_id)


def revocations(keys: TicketKeys, event_id: str, ids: Sequence[str], at_us: int) -> Revocations:
    """A signed revocation list."""
    listed = tuple(sorted(ids))
    signature = keys.sign(_list_text(event_id, at_us, listed))
    return Revocations(event_id, at_us, listed, keys.kid.hex(), signature.hex())


def check_revocations(listed: Revocations, keys: VerifyingKeys, event_id: str) -> frozenset[str]:
    """The ids of a list that one of the keys signed for this event; InvalidInput otherwise."""
    text = _list_text(listed.event_id, listed.at_us, listed.ids)
    try:
        fine = keys.signed(bytes.fromhex(listed.kid), text, bytes.fromhex(listed.signature))
    except ValueError:
        fine = False
    if not fine or listed.event_id != event_id:
        raise InvalidInput("this revocation list is not signed for the event; fetch the bundle again", param="list")
    return frozenset(listed.ids)


def _list_text(event_id: str, at_us: int, ids: Sequence[str]) -> bytes:
    return _LIST_DOMAIN + msgspec.json.encode([event_id, at_us, list(ids)])


def make_bundle(
    keys: TicketKeys, event_id: str, name: str, revoked: Sequence[str], at_us: int, seats: Sequence[str] = ()
) -> Bundle:
    """A bundle as of `at_us`."""
    return Bundle(
        event_id,
        name,
        tuple(raw.hex() for raw in (keys.public, *keys.former)),
        revocations(keys, event_id, revoked, at_us),
        tuple(seats),
        keys.rotating_secret(event_id).hex(),
    )


def read_bundle(path: Path) -> Bundle:
    """The bundle in a file, its list verified; one clear sentence when it is something else."""
    try:
        bundle = msgspec.json.decode(path.read_bytes(), type=Bundle)
        keys = bundle.verifying()
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such bundle; make one with `frontrow door bundle`") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidInput(f"{path} is no door bundle: {error}", param="bundle") from None
    check_revocations(bundle.revocations, keys, bundle.event_id)
    return bundle


def write_bundle(bundle: Bundle, path: Path) -> None:
    path.write_bytes(msgspec.json.encode(bundle))


def seat_name(seats: Sequence[str] | Mapping[int, str], index: int) -> str:
    """The seat's name if the bundle knows it, else its number."""
    try:
        return seats[index]
    except (IndexError, KeyError):
        return f"seat {index}"
