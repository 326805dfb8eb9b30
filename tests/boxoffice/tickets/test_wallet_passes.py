"""Wallet passes (issue 15): read, verified and compared with the ticket by others' software; keys are checked first."""

import hashlib
import io
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.exceptions import InternalError
from cryptography.hazmat.bindings._rust import test_support
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs7 import load_der_pkcs7_certificates
from PIL import Image

from frontrow.boxoffice.organiser.model.brands import Brand, Logo, ticket_look
from frontrow.boxoffice.texts.locale_formats import LANGUAGES
from frontrow.boxoffice.tickets.apple_passes import PassIssuer, make_apple_passes, pass_document
from frontrow.boxoffice.tickets.google_passes import MAX_TOKEN_CHARS, SAVE_URL, PassAccount, make_google_link
from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.boxoffice.tickets.wallet_art import pass_pictures
from frontrow.boxoffice.tickets.wallet_keys import (
    AppleKeysGiven,
    GoogleKeysGiven,
    read_apple_keys,
    read_google_keys,
)
from frontrow.core.errors import InvalidInput
from frontrow.shared.colours import contrast
from frontrow.shared.money import Money
from tests.boxoffice.tickets.samples import NOW, issued, sheet
from tests.support.wallet_files import (
    CLIENT_EMAIL,
    ISSUER_ID,
    PASS_TYPE_ID,
    TEAM_ID,
    authority,
    der,
    p12,
    pass_certificate,
    pem,
    rsa_key,
    service_account,
)

NAMES = ("background", "foreground", "label")
PAST = datetime(2023, 1, 1, tzinfo=UTC)  # before NOW
LATER = datetime(2030, 1, 1, tzinfo=UTC)
GIVEN = AppleKeysGiven(p12(pass_certificate()), password="secret", intermediate=der(authority()[0]))
ISSUER = PassIssuer(PASS_TYPE_ID, TEAM_ID, "Waldbühne GmbH")


def two_tickets() -> list[Sheet]:
    about = {"name": "Ada Lovelace", "type_name": "Child", "price": Money(14_250, "EUR")}
    return [sheet(ticket, seat=seat, **about) for ticket, seat in zip(issued(1, 2), ("A-1-7", "B-GA-2"), strict=True)]


def files_of(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


def openssl(folder: Path, *arguments: str, **files: bytes) -> str:
    for name, body in files.items():
        (folder / name).write_bytes(body)
    ran = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout.decode(errors="replace")


def test_a_pkpass_is_signed_by_the_organiser_and_says_what_the_ticket_says(
    tmp_path: Path, not_checked: Callable[[str], None]
) -> None:
    signer = read_apple_keys(GIVEN, NOW).signer
    bundle = files_of(make_apple_passes(two_tickets(), ISSUER, signer))
    assert list(bundle) == [f"{one.ticket_id}.pkpass" for one in two_tickets()]
    for one, body in zip(two_tickets(), bundle.values(), strict=True):
        files = files_of(body)
        manifest, signature = files.pop("manifest.json"), files.pop("signature")
        hashes = {name: hashlib.sha1(content, usedforsecurity=False).hexdigest() for name, content in files.items()}
        assert json.loads(manifest) == hashes
        content = json.loads(files["pass.json"])
        assert [code["message"] for code in (*content["barcodes"], content["barcode"])] == [one.code, one.code]
        assert content["serialNumber"] == one.ticket_id
        assert (content["passTypeIdentifier"], content["teamIdentifier"]) == (PASS_TYPE_ID, TEAM_ID)
        assert content["relevantDate"] == "2023-11-14T23:13+01:00", "the show's start at the venue"
        fields = content["eventTicket"]
        assert fields["primaryFields"][0]["value"] == one.event_name
        seats = [(field["label"], field["value"]) for field in fields["auxiliaryFields"]]
        assert seats in ([("Section", "A"), ("Row", "1"), ("Seat", "7")], [("Section", "B"), ("Place", "2")])
        back = {field["key"]: field for field in fields["backFields"]}
        assert (back["price"]["value"], back["price"]["currencyCode"]) == (142.5, "EUR")
        assert (back["name"]["value"], back["type"]["value"]) == ("Ada Lovelace", "Child")
    for size, name in ((29, "icon.png"), (87, "icon@3x.png"), (100, "logo@2x.png")):
        assert Image.open(io.BytesIO(files[name])).size == (size, size)
    labels = {field["label"] for group in fields.values() for field in group if "label" in field}
    for language in LANGUAGES:
        table = files[f"{language}.lproj/pass.strings"].decode()
        assert all(f'"{label}" = "' in table for label in labels)
    assert '"Seat" = "座席";' in files["ja.lproj/pass.strings"].decode()
    assert len(load_der_pkcs7_certificates(signature)) == 2, "the pass type's and the intermediate"
    test_support.pkcs7_verify(Encoding.DER, signature, manifest, [authority()[0]], [])
    with pytest.raises(InternalError, match="digest"):
        test_support.pkcs7_verify(Encoding.DER, signature, manifest + b" ", [authority()[0]], [])
    if shutil.which("openssl"):
        check_signature(tmp_path, manifest, signature)
    else:
        not_checked("that a wallet pass's signature is detached and dated (there is no openssl); the signature is")


def check_signature(tmp_path: Path, manifest: bytes, signature: bytes) -> None:
    given = {"manifest": manifest, "signature": signature, "wwdr": pem(authority()[0])}
    asked = ("-inform", "DER", "-in", "signature", "-content", "manifest", "-CAfile", "wwdr", "-purpose", "any")
    openssl(tmp_path, "smime", "-verify", "-binary", *asked, "-out", "checked", **given)
    assert (tmp_path / "checked").read_bytes() == manifest
    said = openssl(tmp_path, "cms", "-cmsout", "-print", "-noout", "-inform", "DER", "-in", "signature")
    assert "signingTime" in said
    assert "eContent: <ABSENT>" in said, "the signature is detached"
    (tmp_path / "manifest").write_bytes(manifest.replace(b"a", b"b", 1))
    with pytest.raises(AssertionError, match="digest"):
        openssl(tmp_path, "smime", "-verify", "-binary", *asked, "-out", "checked")


@pytest.mark.parametrize("colour", ["#c81e3c", "#ffd400", "#777777", "#fefefe", "#000000"])
def test_a_pass_has_the_brand_of_who_sells_in_colours_that_can_be_read(colour: str) -> None:
    picture = io.BytesIO()
    Image.new("RGBA", (600, 100), (10, 20, 30, 255)).save(picture, "PNG")
    look = ticket_look(Brand("org_hall", "Hall", colour, Logo("h", 600, 100)), picture.getvalue())
    (one, _), ours = two_tickets(), pass_document(two_tickets()[0], ISSUER)
    made = pass_document(one, msgspec.structs.replace(ISSUER, look=look))
    shown = {name: "#{:02x}{:02x}{:02x}".format(*map(int, re.findall(r"\d+", made[f"{name}Color"]))) for name in NAMES}
    assert shown["background"] == look.fill
    for name in ("foreground", "label"):
        assert contrast(shown[name], shown["background"]) >= 4.5
    assert ("logoText" in made, "logoText" in ours) == (False, True)
    pictures = pass_pictures(look)
    for scale, end in enumerate(("", "@2x", "@3x"), 1):
        with Image.open(io.BytesIO(pictures[f"logo{end}.png"])) as logo:
            assert (logo.width <= 160 * scale, logo.height) == (True, 50 * scale)
    plain = msgspec.structs.replace(ISSUER, look=ticket_look(Brand("org_hall", "Hall"), b""))
    assert pass_document(one, plain) == ours


def test_apples_keys_are_read_from_every_form_they_come_in() -> None:
    leaf, (wwdr, _) = pass_certificate(), authority()
    elliptic = ec.generate_private_key(ec.SECP256R1())
    forms = [
        GIVEN,
        AppleKeysGiven(p12(leaf, None, b"x", wwdr), password="x"),  # the intermediate is in the file
        AppleKeysGiven(pem(leaf), pem(rsa_key()), intermediate=pem(wwdr)),
        AppleKeysGiven(der(leaf), pem(rsa_key(), b"x"), password="x", intermediate=pem(wwdr)),
        AppleKeysGiven(pem(wwdr) + pem(rsa_key()) + pem(leaf), password="not needed"),  # all in one file
        AppleKeysGiven(pem(leaf), pem(rsa_key()), "", pem(wwdr), PASS_TYPE_ID, TEAM_ID),
        AppleKeysGiven(pem(pass_certificate(key=elliptic)), pem(elliptic), intermediate=pem(wwdr)),
    ]
    for given in forms:
        read = read_apple_keys(given, NOW)
        assert (read.pass_type_id, read.team_id) == (PASS_TYPE_ID, TEAM_ID)
        assert read.expires_at_us == int(leaf.not_valid_after_utc.timestamp()) * 1_000_000
        assert make_apple_passes(two_tickets()[:1], ISSUER, read.signer)[:2] == b"PK"
        assert "PRIVATE" not in repr(read) + repr(given)


WEAK = ec.generate_private_key(ec.SECP224R1())
LEAF, KEY, WWDR = pem(pass_certificate()), pem(rsa_key()), pem(authority()[0])


@pytest.mark.parametrize(
    ("reason", "param", "given"),
    [
        ("unreadable", "certificate", AppleKeysGiven(b"rubbish")),
        ("unreadable", "certificate", AppleKeysGiven(b"-----BEGIN CERTIFICATE-----\nrubbish")),
        ("wrong_password", "password", AppleKeysGiven(p12(pass_certificate()), password="guess")),
        ("wrong_password", "password", AppleKeysGiven(p12(pass_certificate()))),
        ("wrong_password", "password", AppleKeysGiven(LEAF, pem(rsa_key(), b"secret"), "guess")),
        ("wrong_password", "password", AppleKeysGiven(LEAF, pem(rsa_key(), b"secret"))),
        ("no_key", "key", AppleKeysGiven(LEAF)),
        ("bad_key", "key", AppleKeysGiven(LEAF, b"rubbish")),
        ("bad_key", "key", AppleKeysGiven(pem(pass_certificate(key=WEAK)), pem(WEAK))),
        ("other_key", "key", AppleKeysGiven(LEAF, pem(WEAK))),
        ("no_pass_type", "certificate", AppleKeysGiven(WWDR, KEY)),
        ("other_pass_type", "pass_type_id", AppleKeysGiven(LEAF, KEY, pass_type_id="pass.org.other")),
        ("other_team", "team_id", AppleKeysGiven(LEAF, KEY, team_id="ZZZZZZZZZZ")),
        ("expired", "certificate", AppleKeysGiven(pem(pass_certificate(end=PAST)), KEY, "", WWDR)),
        ("not_yet_valid", "certificate", AppleKeysGiven(pem(pass_certificate(begin=LATER)), KEY, "", WWDR)),
        ("no_intermediate", "intermediate", AppleKeysGiven(LEAF, KEY)),
        ("bad_intermediate", "intermediate", AppleKeysGiven(LEAF, KEY, "", b"rubbish")),
        ("other_intermediate", "intermediate", AppleKeysGiven(LEAF, KEY, "", pem(authority("Test WWDR", LATER)[0]))),
    ],
)
def test_a_refused_upload_says_what_is_wrong_with_which_field(reason: str, param: str, given: AppleKeysGiven) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_apple_keys(given, NOW)
    assert (refused.value.about["reason"], refused.value.param) == (reason, param)


def saved(link: bytes) -> dict[str, Any]:
    """The claims of the link, verified with the public key."""
    token = link.decode().removeprefix(SAVE_URL)
    return jwt.decode(token, rsa_key().public_key(), algorithms=["RS256"], audience="google")


def test_a_google_link_is_signed_and_contains_the_event_and_the_ticket() -> None:
    read = read_google_keys(GoogleKeysGiven(ISSUER_ID, service_account()))
    one = replace(two_tickets()[0], event_name="Aurora Live")
    link = make_google_link(one, PassAccount(read.issuer_id, read.client_email, "Waldbühne"), read.signer, NOW)
    assert len(link) <= len(SAVE_URL) + MAX_TOKEN_CHARS
    claims = saved(link)
    assert (claims["iss"], claims["typ"], claims["iat"]) == (CLIENT_EMAIL, "savetowallet", NOW // 1_000_000)
    (event,), (ticket,) = claims["payload"]["eventTicketClasses"], claims["payload"]["eventTicketObjects"]
    assert event["eventName"]["defaultValue"]["value"] == one.event_name
    assert event["dateTime"]["start"] == "2023-11-14T23:13+01:00"
    assert event["venue"]["name"]["defaultValue"]["value"] == "Waldbühne"
    assert event["id"].startswith(f"{ISSUER_ID}.")
    assert (ticket["classId"], ticket["barcode"]["value"]) == (event["id"], one.code)
    assert [part["defaultValue"]["value"] for part in ticket["seatInfo"].values()] == ["A", "1", "7"]


def test_add_ons_of_the_booking_are_on_both_passes() -> None:
    with_some = replace(two_tickets()[0], add_ons=("2 × Dinner", "1 × Parking"), event_name="Aurora Live")
    bundle = files_of(make_apple_passes([with_some, two_tickets()[1]], ISSUER, read_apple_keys(GIVEN, NOW).signer))
    backs = [json.loads(files_of(body)["pass.json"])["eventTicket"]["backFields"] for body in bundle.values()]
    shown = [[field["value"] for field in back if field["key"] == "add_ons"] for back in backs]
    assert shown == [["2 × Dinner, 1 × Parking"], []], "a ticket without any says nothing of them"
    read = read_google_keys(GoogleKeysGiven(ISSUER_ID, service_account()))
    roomy = replace(with_some, venue_name="", city="")  # a link is short: the place comes before add-ons
    link = make_google_link(roomy, PassAccount(read.issuer_id, read.client_email, "Waldbühne"), read.signer, NOW)
    (ticket,) = saved(link)["payload"]["eventTicketObjects"]
    assert [module["body"] for module in ticket["textModulesData"]] == ["2 × Dinner, 1 × Parking"]


@pytest.mark.parametrize("length", [10, 80, 200])
def test_a_link_with_long_names_leaves_out_what_does_not_fit_but_never_the_code(length: int) -> None:
    read = read_google_keys(GoogleKeysGiven(ISSUER_ID, service_account()))
    long = sheet(issued(1)[0], event_name="音" * length, venue_name="ö" * length, name="é" * 100, type_name="ü" * 100)
    link = make_google_link(long, PassAccount(ISSUER_ID, CLIENT_EMAIL, "ß" * 200), read.signer, NOW)
    assert len(link) <= len(SAVE_URL) + MAX_TOKEN_CHARS
    ticket = saved(link)["payload"]["eventTicketObjects"][0]
    assert (ticket["barcode"]["value"], "seatInfo" in ticket) == (long.code, True)


@pytest.mark.parametrize(
    ("param", "given"),
    [
        ("issuer_id", GoogleKeysGiven("BCR2DN4T", service_account())),
        ("service_account", GoogleKeysGiven(ISSUER_ID, b"rubbish")),
        ("service_account", GoogleKeysGiven(ISSUER_ID, b"{}")),
        ("service_account", GoogleKeysGiven(ISSUER_ID, service_account(type="authorized_user"))),
        ("service_account", GoogleKeysGiven(ISSUER_ID, service_account(client_email="nobody"))),
        ("service_account", GoogleKeysGiven(ISSUER_ID, service_account(private_key="rubbish"))),
        ("service_account", GoogleKeysGiven(ISSUER_ID, service_account(private_key=pem(WEAK).decode()))),
    ],
)
def test_a_service_account_that_cannot_sign_is_refused(param: str, given: GoogleKeysGiven) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_google_keys(given)
    assert refused.value.param == param
    assert "PRIVATE" not in str(refused.value)
