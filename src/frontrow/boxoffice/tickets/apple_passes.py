"""Tickets for Apple Wallet: `.pkpass` files, signed with the organiser's certificate.

A `.pkpass` is a zip with `pass.json`, pictures, the labels in every language (`xx.lproj/pass.strings`), a manifest with
the SHA-1 of each file (the format demands that hash) and a detached PKCS #7 signature over the manifest. The phone
chooses the language, so a ticket has one file for all. Several tickets are a `.pkpasses`: a zip of such files.
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, pkcs7

from frontrow.boxoffice.organiser.model.brands import OUR_LOOK, TicketLook
from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW
from frontrow.boxoffice.texts.message_texts import languages, words_of
from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.boxoffice.tickets.wallet_art import BRAND, WHITE, Colour, pass_pictures
from frontrow.boxoffice.tickets.wallet_keys import AppleSigner
from frontrow.shared.colours import parts_of
from frontrow.shared.money import DIGITS

EXPIRES_AFTER: Final = timedelta(days=1)  # after the show
LABELS: Final = (
    *("section", "row", "seat", "standing_place", "when", "where"),
    *("name", "ticket_type", "price", "ticket", "valid_once"),
)
_LABEL_LANGUAGE: Final = "en"  # labels in pass.json are English; phones of other languages look them up
_ZIP_DATE: Final = (2020, 1, 1, 0, 0, 0)


class PassIssuer(msgspec.Struct, frozen=True):
    """Who issues passes: the identifiers in the certificate, and the seller's name."""

    pass_type_id: str
    team_id: str
    seller: str
    look: TicketLook = OUR_LOOK


def make_apple_passes(sheets: Sequence[Sheet], issuer: PassIssuer, signer: AppleSigner) -> bytes:
    """A `.pkpass` of one ticket, or a `.pkpasses` of several. Signing takes milliseconds: not on the event loop."""
    signing = _Signing(signer)
    made = [make_apple_pass(sheet, issuer, signing) for sheet in sheets]
    if len(made) == 1:
        return made[0]
    return _zip({f"{sheet.ticket_id}.pkpass": body for sheet, body in zip(sheets, made, strict=True)})


def make_apple_pass(sheet: Sheet, issuer: PassIssuer, signing: "_Signing") -> bytes:
    files = {"pass.json": msgspec.json.encode(pass_document(sheet, issuer)), **pass_pictures(issuer.look)}
    files |= {f"{name}.lproj/pass.strings": _strings(name) for name in languages()}
    digests = {name: hashlib.sha1(body, usedforsecurity=False).hexdigest() for name, body in files.items()}
    manifest = msgspec.json.encode(digests)
    return _zip({**files, "manifest.json": manifest, "signature": signing.sign(manifest)})


class _Signing:
    """The organiser's certificate and key, opened once per file."""

    def __init__(self, signer: AppleSigner) -> None:
        self._certificate = x509.load_pem_x509_certificate(signer.certificate.encode())
        self._intermediate = x509.load_pem_x509_certificate(signer.intermediate.encode())
        # it was checked when it was uploaded, which takes ten times as long as signing
        self._key: Any = load_pem_private_key(signer.key.encode(), None, unsafe_skip_rsa_key_validation=True)

    def sign(self, manifest: bytes) -> bytes:
        """The detached signature with the time of signing and Apple's intermediate certificate."""
        builder = pkcs7.PKCS7SignatureBuilder().set_data(manifest)
        builder = builder.add_signer(self._certificate, self._key, hashes.SHA256()).add_certificate(self._intermediate)
        return builder.sign(Encoding.DER, [pkcs7.PKCS7Options.DetachedSignature, pkcs7.PKCS7Options.Binary])


def pass_document(sheet: Sheet, issuer: PassIssuer) -> dict[str, Any]:
    """The content of `pass.json`."""
    words, look = words_of(_LABEL_LANGUAGE), issuer.look
    code = {"format": "PKBarcodeFormatQR", "message": sheet.code, "messageEncoding": "iso-8859-1"}
    code["altText"] = sheet.ticket_id
    return {
        "formatVersion": 1,
        "passTypeIdentifier": issuer.pass_type_id,
        "teamIdentifier": issuer.team_id,
        "serialNumber": sheet.ticket_id,
        "organizationName": issuer.seller,
        "description": sheet.event_name,
        **({} if look.logo else {"logoText": issuer.seller}),  # a logo shows the name
        "backgroundColor": _rgb(parts_of(look.fill) if look.fill else BRAND),
        "foregroundColor": _rgb(parts_of(look.ink) if look.fill else WHITE),
        "labelColor": _rgb(parts_of(look.label) if look.fill else (222, 224, 255)),
        "relevantDate": _time(sheet.starts_at),
        "expirationDate": _time(sheet.ends_at + EXPIRES_AFTER),
        "sharingProhibited": True,
        "barcodes": [code],
        "barcode": code,  # for phones before iOS 9
        "semantics": _semantics(sheet),
        "eventTicket": _fields(sheet, words),
    }


def _rgb(colour: Colour) -> str:
    return "rgb({}, {}, {})".format(*colour)


def _fields(sheet: Sheet, words: Mapping[str, str]) -> dict[str, Any]:
    when = _field("when", words["when"], _time(sheet.starts_at))
    when |= {"dateStyle": "PKDateStyleMedium", "timeStyle": "PKDateStyleShort", "ignoresTimeZone": True}
    where = [_field("where", words["where"], sheet.place)] if sheet.place else []
    back = [_field("ticket", words["ticket"], sheet.ticket_id)]
    back += [_field("name", words["name"], sheet.name)] if sheet.name else []
    back += [_field("type", words["ticket_type"], sheet.type_name)] if sheet.type_name else []
    back += [_field("add_ons", words["add_ons"], ", ".join(sheet.add_ons))] if sheet.add_ons else []
    if sheet.price is not None:
        amount = sheet.price.minor / 10 ** DIGITS.get(sheet.price.currency, 2)
        back.append(_field("price", words["price"], amount) | {"currencyCode": sheet.price.currency})
    back.append({"key": "rule", "value": words["valid_once"]})
    return {
        "primaryFields": [{"key": "event", "value": sheet.event_name}],
        "secondaryFields": [when, *where],
        "auxiliaryFields": [
            _field(f"seat{number}", label, part) for number, (label, part) in enumerate(sheet.seat_words(words))
        ],
        "backFields": back,
    }


def _field(key: str, label: str, value: Any) -> dict[str, Any]:
    return {"key": key, "label": label, "value": value}


def _semantics(sheet: Sheet) -> dict[str, Any]:
    """What the phone understands, for example to suggest the way to the venue."""
    section, row, number = sheet.parts
    seat = {"seatSection": section, "seatRow": row, "seatNumber": number}
    if row == AREA_ROW:
        del seat["seatRow"]
    found = {"eventName": sheet.event_name, "venueName": sheet.venue_name, "eventStartDate": _time(sheet.starts_at)}
    return {name: value for name, value in found.items() if value} | {"seats": [seat]}


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


def _strings(language: str) -> bytes:
    """The labels in a language, as Apple writes such tables."""
    english, own = words_of(_LABEL_LANGUAGE), words_of(language)
    return "".join(f'"{_escape(english[name])}" = "{_escape(own[name])}";\n' for name in LABELS).encode()


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _zip(files: Mapping[str, bytes]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _ZIP_DATE), content, zipfile.ZIP_DEFLATED)
    return body.getvalue()
