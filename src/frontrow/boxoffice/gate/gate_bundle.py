"""The gate bundle, one JSON file for the gates: public keys, seat names, ticket types and revocation list of an event.

The revocation list is signed with the ticket key, so a gate can load a newer one from any source. It only grows. With
rotating codes the bundle contains the event's secret. Whoever has the bundle can refresh rotating codes but cannot
forge a ticket.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from frontrow.boxoffice.tickets.signing_keys import TicketKeys, VerifyingKeys
from frontrow.boxoffice.tickets.ticket_codes import event_hash
from frontrow.core.errors import InvalidInput

_LIST_DOMAIN: Final = b"frontrow revocations 1\0"
NO_TYPES: Final[Mapping[str, Sequence[int]]] = MappingProxyType({})


class Revocations(msgspec.Struct, frozen=True):
    """The ids of the revoked tickets of an event at a point in time, signed."""

    event_id: str
    at_us: int
    ids: tuple[str, ...]
    kid: str
    signature: str


class Bundle(msgspec.Struct, frozen=True):
    """Everything a gate needs to check the tickets of one event offline."""

    event_id: str
    name: str
    keys: tuple[str, ...]  # public keys in hex
    revocations: Revocations
    seats: tuple[str, ...] = ()  # seat names by index
    rotating_secret: str = ""
    types: dict[str, tuple[int, ...]] = {}  # the sold seats of each ticket type; empty for an event without types
    reentry: bool = False  # whether people who left may come back
    disputed: tuple[str, ...] = ()  # the ids of tickets whose money is disputed; a newer bundle has others
    block_disputed: bool = False  # whether those are refused

    def verifying(self) -> VerifyingKeys:
        return VerifyingKeys.of(*map(bytes.fromhex, self.keys))

    def event(self) -> bytes:
        """The event as it is written in ticket codes."""
        return event_hash(self.event_id)


def sign_revocations(keys: TicketKeys, event_id: str, ids: Sequence[str], at_us: int) -> Revocations:
    """A signed revocation list."""
    sorted_ids = tuple(sorted(ids))
    signature = keys.sign(_signed_text(event_id, at_us, sorted_ids))
    return Revocations(event_id, at_us, sorted_ids, keys.kid.hex(), signature.hex())


def check_revocations(listed: Revocations, keys: VerifyingKeys, event_id: str) -> frozenset[str]:
    """The ids of the list, if one of the keys signed it for this event; otherwise InvalidInput."""
    text = _signed_text(listed.event_id, listed.at_us, listed.ids)
    try:
        valid = keys.signed(bytes.fromhex(listed.kid), text, bytes.fromhex(listed.signature))
    except ValueError:
        valid = False
    if not valid or listed.event_id != event_id:
        raise InvalidInput("this revocation list is not signed for the event; fetch the bundle again", param="list")
    return frozenset(listed.ids)


def _signed_text(event_id: str, at_us: int, ids: Sequence[str]) -> bytes:
    return _LIST_DOMAIN + msgspec.json.encode([event_id, at_us, list(ids)])


def make_bundle(
    keys: TicketKeys,
    event_id: str,
    name: str,
    revoked: Sequence[str],
    at_us: int,
    seats: Sequence[str] = (),
    types: Mapping[str, Sequence[int]] = NO_TYPES,
    *,
    reentry: bool = False,
    disputed: Sequence[str] = (),
    block_disputed: bool = False,
) -> Bundle:
    """The bundle of an event at `at_us`."""
    return Bundle(
        event_id,
        name,
        tuple(raw.hex() for raw in (keys.public, *keys.former)),
        sign_revocations(keys, event_id, revoked, at_us),
        tuple(seats),
        keys.rotating_secret(event_id).hex(),
        {one: tuple(sold) for one, sold in types.items()},
        reentry,
        tuple(disputed),
        block_disputed,
    )


def read_bundle(path: Path) -> Bundle:
    """The bundle in a file, with its revocation list verified; otherwise InvalidInput."""
    try:
        bundle = msgspec.json.decode(path.read_bytes(), type=Bundle)
        keys = bundle.verifying()
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such bundle; create one with `frontrow door bundle`") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidInput(f"{path} is not a gate bundle: {error}", param="bundle") from None
    check_revocations(bundle.revocations, keys, bundle.event_id)
    return bundle


def write_bundle(bundle: Bundle, path: Path) -> None:
    path.write_bytes(msgspec.json.encode(bundle))
