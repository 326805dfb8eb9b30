"""Tickets for Google Wallet: a link with a signed token (JWT) that contains the event and one ticket.

A token of more than 1,800 characters is not safe in a link: some browsers cut it off. A shorter kind of token only
names an event and a ticket that were sent to Google before, which needs calls from this server. So the token has what
fits: always the code, the seat and the event's name, then each of `_EXTRAS` that there is room for. A name is shortened
only if nothing else helps.
"""

import base64
import hashlib
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW
from frontrow.boxoffice.texts.message_texts import words_of
from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.boxoffice.tickets.wallet_keys import GoogleSigner
from frontrow.core.clock import US_PER_S
from frontrow.shared.money import DIGITS

SAVE_URL: Final = "https://pay.google.com/gp/v/save/"
MAX_TOKEN_CHARS: Final = 1_800
HEAD_CHARS: Final = len("eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9..")  # of the token, with its two points
MICROS_DIGITS: Final = 6
NAME_CHARS: Final = (200, 100, 60, 30, 15)  # lengths of the event's name to try
SELLER_CHARS: Final = 20  # more are not shown
PART_CHARS: Final = 32  # of a section's or row's name
_LANGUAGE: Final = "en"  # of names that have no language

Document = dict[str, Any]


class PassAccount(msgspec.Struct, frozen=True):
    """Who issues passes: the account at Google, and the seller's name."""

    issuer_id: str
    client_email: str
    seller: str
    colour: str = ""  # of the seller's brand; empty: Google's choice


def make_google_link(sheet: Sheet, account: PassAccount, signer: GoogleSigner, now_us: int) -> bytes:
    """The link that saves the ticket, in ASCII. Signing takes milliseconds: not on the event loop."""
    key: Any = load_pem_private_key(signer.key.encode(), None, unsafe_skip_rsa_key_validation=True)
    most_bytes = _room(key)
    for chars in NAME_CHARS:
        event, ticket = _describe(sheet, account, chars)
        if len(_claims(event, ticket, account, now_us)) <= most_bytes:
            break
    for add in _EXTRAS:
        fuller = deepcopy((event, ticket))
        add(*fuller, sheet)
        if len(_claims(*fuller, account, now_us)) <= most_bytes:
            event, ticket = fuller
    token = jwt.PyJWS().encode(_claims(event, ticket, account, now_us), key, algorithm="RS256")
    return (SAVE_URL + token).encode()


def _room(key: RSAPrivateKey) -> int:
    """The bytes of claims that fit, beside the signature. Base64 makes four characters of three bytes."""
    signature_chars = -(-key.key_size // 6)
    return (MAX_TOKEN_CHARS - HEAD_CHARS - signature_chars) * 3 // 4


def _claims(event: Document, ticket: Document, account: PassAccount, now_us: int) -> bytes:
    claims = {"iss": account.client_email, "aud": "google", "typ": "savetowallet", "iat": now_us // US_PER_S}
    payload = {"eventTicketClasses": [event], "eventTicketObjects": [ticket]}
    return msgspec.json.encode(claims | {"origins": [], "payload": payload})


def _describe(sheet: Sheet, account: PassAccount, name_chars: int) -> tuple[Document, Document]:
    """The event and the ticket with what they must have."""
    event: Document = {
        "id": f"{account.issuer_id}.{_short_id(sheet.event_id)}",
        "issuerName": _short(account.seller, SELLER_CHARS),
        "reviewStatus": "UNDER_REVIEW",
        "eventName": _text(_short(sheet.event_name, name_chars)),
    }
    if account.colour:
        event["hexBackgroundColor"] = account.colour
    section, row, number = sheet.parts
    parts = {"section": section, "row": "" if row == AREA_ROW else row, "seat": number}
    ticket: Document = {
        "id": f"{account.issuer_id}.{sheet.ticket_id}",
        "classId": event["id"],
        "state": "ACTIVE",
        "barcode": {"type": "QR_CODE", "value": sheet.code},
        "seatInfo": {name: _text(_short(part, PART_CHARS)) for name, part in parts.items() if part},
    }
    return event, ticket


def _short_id(event_id: str) -> str:
    """The event's id in 13 characters, because a token names it twice."""
    return base64.b32encode(hashlib.blake2b(event_id.encode(), digest_size=8).digest()).decode().rstrip("=").lower()


def _add_time(event: Document, ticket: Document, sheet: Sheet) -> None:
    event["dateTime"] = {"start": sheet.starts_at.isoformat(timespec="minutes")}


def _add_venue(event: Document, ticket: Document, sheet: Sheet) -> None:
    if sheet.place:  # both are required
        event["venue"] = {
            "name": _text(sheet.venue_name or sheet.place),
            "address": _text(sheet.city or sheet.place),
        }


def _add_type(event: Document, ticket: Document, sheet: Sheet) -> None:
    if sheet.type_name:
        ticket["ticketType"] = _text(sheet.type_name)


def _add_holder(event: Document, ticket: Document, sheet: Sheet) -> None:
    if sheet.name:
        ticket["ticketHolderName"] = sheet.name


def _add_add_ons(event: Document, ticket: Document, sheet: Sheet) -> None:
    if sheet.add_ons:
        body = ", ".join(sheet.add_ons)
        ticket["textModulesData"] = [{"id": "add_ons", "header": words_of(_LANGUAGE)["add_ons"], "body": body}]


def _add_price(event: Document, ticket: Document, sheet: Sheet) -> None:
    if sheet.price is not None:
        digits = DIGITS.get(sheet.price.currency, 2)
        micros = sheet.price.minor * 10 ** (MICROS_DIGITS - digits)
        ticket["faceValue"] = {"micros": str(micros), "currencyCode": sheet.price.currency}


def _add_number(event: Document, ticket: Document, sheet: Sheet) -> None:
    ticket["ticketNumber"] = sheet.ticket_id


_EXTRAS: Final[tuple[Callable[[Document, Document, Sheet], None], ...]] = (  # the most important first
    *(_add_time, _add_venue, _add_add_ons, _add_type, _add_holder, _add_price, _add_number),
)


def _text(value: str) -> Document:
    return {"defaultValue": {"language": _LANGUAGE, "value": value}}


def _short(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
