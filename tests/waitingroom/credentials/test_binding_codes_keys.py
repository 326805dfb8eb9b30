"""Bound places (a copy is worthless), Verified-Fan codes (W12) and the folder of keys."""

import base64
from pathlib import Path

import jwt
import pytest

from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.waitingroom.credentials.fan_codes import Codes, digest_of, imported, read_csv
from frontrow.waitingroom.credentials.key_binding import (
    PROOF_TYPE,
    check_proof,
    check_thumbprint,
    place_hash,
    thumbprint,
)
from frontrow.waitingroom.credentials.places import Place
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.errors import CodeInvalid, ProofInvalid
from tests.waitingroom.credentials.bound_browser import NOW_S, Browser


def test_only_the_browser_that_joined_can_prove_a_bound_place() -> None:
    mine, thief = Browser(), Browser()
    place = Place("concert", 0, 1, 5, NOW_S, "", thumbprint(mine.jwk))
    check_proof("place.text", place, mine.proof("place.text"), NOW_S)
    wrong = [
        None,
        "",
        "x" * 5000,
        "a.b.c",
        thief.proof("place.text"),
        thief.proof("place.text", header={"jwk": mine.jwk}),
        mine.proof("other.text"),
        mine.proof("place.text", claims={"evt": "other"}),
        mine.proof("place.text", claims={"iat": NOW_S - 61}),
        mine.proof("place.text", claims={"iat": NOW_S + 61}),
        mine.proof("place.text", header={"typ": "JWT"}),
        mine.proof("place.text", header={"jwk": "text"}),
        mine.proof("place.text", header={"jwk": {**mine.jwk, "crv": "P-384"}}),
        jwt.encode({"ath": place_hash("place.text")}, "k" * 32, headers={"typ": PROOF_TYPE, "jwk": mine.jwk}),
    ]
    for proof in wrong:
        with pytest.raises(ProofInvalid):
            check_proof("place.text", place, proof, NOW_S)


def test_an_unbound_place_needs_no_proof_and_a_thumbprint_must_look_like_one() -> None:
    check_proof("place.text", Place("concert", 0, 1, 5, NOW_S), None, NOW_S)
    assert check_thumbprint("A" * 43)
    for wrong in ("", "A" * 42, "A" * 44, "é" * 43, '"' * 43):
        with pytest.raises(InvalidInput):
            check_thumbprint(wrong)


def test_w12_codes_are_genuine_for_one_event_and_pick_a_lane() -> None:
    codes = Codes(b"m" * 32)
    made = list(codes.make("concert", 1, range(1000)))
    assert len(set(made)) == 1000
    checked = [codes.check("concert", code) for code in made]
    assert [code.id for code in checked] == list(range(1000))
    assert {code.lane for code in checked} == {1}
    assert codes.check("concert", f"  {made[7].lower()} ") == checked[7]
    for wrong in ("", "VF--", made[0][:-1] + "?", made[0] + "0", made[0].replace("VF", "XX"), "x" * 10_000, "VF-é-é"):
        with pytest.raises(CodeInvalid):
            codes.check("concert", wrong)
    with pytest.raises(CodeInvalid):
        codes.check("other", made[0])
    with pytest.raises(CodeInvalid):
        Codes(b"n" * 32).check("concert", made[0])


def test_w12_an_organisers_own_codes_come_from_a_csv_file() -> None:
    lanes = {"general": 0, "fans": 1}
    found = read_csv(["code,lane", "HELLO-1,fans", "HELLO-2,general"], lanes)
    assert found == {digest_of("hello-1 "): 1, digest_of("HELLO-2"): 0}
    assert len({imported(*row).id for row in found.items()}) == 2
    assert min(imported(*row).id for row in found.items()) > 1 << 30, "above every signed code's number"
    for lines in (
        ["code,lane", "abcd,nowhere"],
        ["code,lane", "x,fans"],
        ["a,b", "abcd,fans"],
        ["code,lane", *["same,fans"] * 2],
    ):
        with pytest.raises(InvalidInput):
            read_csv(lines, lanes)


def test_keys_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    first = RoomKeys.load(tmp_path / "keys")
    second = RoomKeys.load(tmp_path / "keys")
    assert first.place_secrets == second.place_secrets
    assert first.master_secret == second.master_secret
    assert first.document_key.private_bytes_raw() == second.document_key.private_bytes_raw()
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "keys").iterdir())
    assert base64.b64encode(first.master_secret).decode() not in repr(first)
    assert repr(first.master_secret) not in repr(first)
    (tmp_path / "keys" / "document.key").unlink()
    with pytest.raises(ConfigError):
        RoomKeys.load(tmp_path / "keys")
