"""W7: passes: RS256, bound to event and person, checked with the published keys alone, keys rotate."""

import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import KeySet

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.credentials import passes
from frontrow.waitingroom.credentials.passes import Pass, PassSigner, PassVerifier
from frontrow.waitingroom.credentials.places import b64
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.errors import PassExpired, PassForeign, PassInvalid
from frontrow.waitingroom.ports import PlaceKey
from tests.waitingroom.credentials.node_verifier import node_verifies

NOW_S = 1_790_000_000
VISIT = Pass("concert", "fan-7", PlaceKey(0, 1, 12), NOW_S, NOW_S + 900, NOW_S, "")


@pytest.fixture(scope="module")
def signer(room_keys: RoomKeys) -> PassSigner:
    return PassSigner(room_keys.pass_keys)


def test_w7_a_pass_is_rs256_lives_fifteen_minutes_and_names_event_and_person(signer: PassSigner) -> None:
    text = signer.mint(VISIT)
    assert jwt.get_unverified_header(text)["alg"] == "RS256"
    claims = jwt.decode(text, options={"verify_signature": False})
    assert (claims["aud"], claims["sub"], claims["exp"] - claims["iat"]) == ("concert", "fan-7", 900)
    assert signer.verify(text, "concert", NOW_S) == VISIT


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # RFC 9864's new name is not known to most libraries yet
@pytest.mark.parametrize("algorithm", passes.ALGORITHMS)
def test_w7_pyjwt_joserfc_and_npm_jose_verify_it_with_the_published_keys(room_keys: RoomKeys, algorithm: str) -> None:
    signer = PassSigner(room_keys.pass_keys, algorithm)
    now_s = int(time.time())  # other libraries look at the wall clock
    visit = Pass("concert", "fan-7", PlaceKey(0, 1, 12), now_s, now_s + 900, now_s, "")
    text, jwks = signer.mint(visit), json.loads(json.dumps(signer.jwks()))
    key = jwt.PyJWKSet.from_dict(jwks)[jwt.get_unverified_header(text)["kid"]]
    by_pyjwt = jwt.decode(text, key, algorithms=[algorithm], audience="concert")
    by_joserfc = joserfc_jwt.decode(text, KeySet.import_key_set(jwks), algorithms=[algorithm]).claims
    ask = {"jwt": text, "jwks": jwks, "algorithms": [algorithm], "audience": "concert"}
    by_jose, refused = node_verifies(ask, ask | {"audience": "other"})
    assert by_pyjwt == by_joserfc == by_jose
    assert refused == {"error": "ERR_JWT_CLAIM_VALIDATION_FAILED"}
    assert PassVerifier(jwks).verify(text, "concert", now_s) == visit, "a shop needs the public keys only"
    private = room_keys.pass_keys[0] if algorithm == "RS256" else passes.ed25519_of(room_keys.pass_keys[0])
    by_library = jwt.encode(by_pyjwt, private, algorithm, {"kid": jwt.get_unverified_header(text)["kid"]})
    assert text == by_library, "written by hand, byte for byte as the library writes it"


def test_a_pass_from_before_places_named_their_event_is_of_its_own_event_only(room_keys: RoomKeys) -> None:
    """Passes on their way during the upgrade to version 12 keep working; the two events are two people."""
    signer, people = PassSigner(room_keys.pass_keys), []
    for event in ("concert", "opera"):
        old = Pass(event, "place:0.1.12", PlaceKey(0, 1, 12), NOW_S, NOW_S + 900, NOW_S, "")
        verified = PassVerifier(signer.jwks()).verify(signer.mint(old), event, NOW_S)
        assert verified.id == old.id
        people.append(verified.person)
    assert people == ["place:concert:0.1.12", "place:opera:0.1.12"]


def test_published_keys_hold_nothing_private(signer: PassSigner) -> None:
    names = {key["kty"]: set(key) - {"kty", "use", "alg", "kid"} for key in signer.jwks()["keys"]}
    assert names == {"RSA": {"n", "e"}, "OKP": {"crv", "x"}}


def test_a_pass_runs_out_at_its_very_second(signer: PassSigner) -> None:
    text = signer.mint(VISIT)
    assert signer.verify(text, "concert", NOW_S + 899)
    with pytest.raises(PassExpired) as refused:
        signer.verify(text, "concert", NOW_S + 900)
    assert (refused.value.code, refused.value.http_status) == ("pass_expired", 401)


@pytest.mark.parametrize("algorithm", passes.ALGORITHMS)
def test_the_same_pass_is_the_same_bytes_on_every_server(room_keys: RoomKeys, algorithm: str) -> None:
    here, there = (PassSigner(room_keys.pass_keys, algorithm) for _ in range(2))
    assert here.mint(VISIT) == here.mint(VISIT) == there.mint(VISIT)


def test_the_algorithm_can_be_changed_while_passes_are_in_use(room_keys: RoomKeys) -> None:
    """Servers with either setting, and shops with the keys of either, accept the passes of both."""
    before, after = PassSigner(room_keys.pass_keys), PassSigner(room_keys.pass_keys, "EdDSA")
    assert before.jwks() == after.jwks()
    shop = PassVerifier(before.jwks())
    for text in (before.mint(VISIT), after.mint(VISIT)):
        assert before.verify(text, "concert", NOW_S) == after.verify(text, "concert", NOW_S) == VISIT
        assert shop.verify(text, "concert", NOW_S) == VISIT
    assert jwt.get_unverified_header(after.mint(VISIT))["alg"] == "EdDSA"


def test_each_key_checks_its_own_algorithm_only(room_keys: RoomKeys) -> None:
    signer = PassSigner(room_keys.pass_keys, "EdDSA")
    text = signer.mint(VISIT)
    claims: dict[str, Any] = jwt.decode(text, options={"verify_signature": False})
    rsa_kid, ed25519_kid = (key["kid"] for key in signer.jwks()["keys"][:2])
    own = passes.ed25519_of(room_keys.pass_keys[0])
    forged = [
        jwt.encode(claims, own, algorithm="EdDSA", headers={"kid": rsa_kid}),
        jwt.encode(claims, room_keys.pass_keys[0], algorithm="RS256", headers={"kid": ed25519_kid}),
        jwt.encode(claims, passes.ed25519_of(passes.new_key()), algorithm="EdDSA", headers={"kid": ed25519_kid}),
        jwt.encode(claims, room_keys.document_key, algorithm="EdDSA", headers={"kid": passes.DOCUMENT_KEY}),
    ]
    for wrong in forged:
        with pytest.raises(PassInvalid):
            signer.verify(wrong, "concert", NOW_S)
    with pytest.raises(ConfigError, match="RS256 or EdDSA"):
        PassSigner(room_keys.pass_keys, "HS256")


def test_wrong_event_and_every_forgery_are_refused(signer: PassSigner, room_keys: RoomKeys) -> None:
    text = signer.mint(VISIT)
    with pytest.raises(PassForeign):
        signer.verify(text, "other", NOW_S)
    public = room_keys.pass_keys[0].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims: dict[str, Any] = jwt.decode(text, options={"verify_signature": False})
    header = jwt.get_unverified_header(text)
    head, payload, _ = text.split(".")
    hs256 = b64(json.dumps(header | {"alg": "HS256"}).encode()).decode() + "." + payload
    forged = [
        hs256 + "." + b64(hmac.digest(public, hs256.encode(), "sha256")).decode(),
        b64(json.dumps(header | {"alg": "none"}).encode()).decode() + f".{payload}.",
        f"{head}.{payload}.",
        jwt.encode(claims, passes.new_key(), algorithm="RS256", headers={"kid": header["kid"]}),
        jwt.encode(claims, room_keys.pass_keys[0], algorithm="RS512", headers={"kid": header["kid"]}),
        jwt.encode(claims, room_keys.pass_keys[0], algorithm="RS256", headers={"kid": "other"}),
        jwt.encode(claims, room_keys.pass_keys[0], algorithm="RS256"),
        jwt.encode(claims | {"plc": "x"}, room_keys.pass_keys[0], algorithm="RS256", headers={"kid": header["kid"]}),
        jwt.encode(claims | {"iss": "x"}, room_keys.pass_keys[0], algorithm="RS256", headers={"kid": header["kid"]}),
        "x" * 1_000_000,
        "",
        "a.b.c",
    ]
    for wrong in forged:
        with pytest.raises(PassInvalid) as refused:
            signer.verify(wrong, "concert", NOW_S)
        assert (refused.value.code, refused.value.http_status) == ("pass_invalid", 401)


def test_a_flipped_bit_anywhere_in_the_signed_part_fails(signer: PassSigner) -> None:
    text = signer.mint(VISIT).encode()
    signed = text.rpartition(b".")[0]
    for index in range(0, len(signed) * 8, 7):
        flipped = bytearray(text)
        flipped[index // 8] ^= 1 << index % 8
        with pytest.raises(PassInvalid):
            signer.verify(flipped.decode("latin-1"), "concert", NOW_S)


def test_keys_rotate_and_old_passes_stay_good_for_a_while(room_keys: RoomKeys) -> None:
    old = PassSigner(room_keys.pass_keys).mint(VISIT)
    once = room_keys.rotated(keep=1)
    signer = PassSigner(once.pass_keys)
    assert signer.verify(old, "concert", NOW_S) == VISIT
    assert len(signer.jwks()["keys"]) == 4, "two keys, each for both algorithms"
    assert jwt.get_unverified_header(signer.mint(VISIT))["kid"] != jwt.get_unverified_header(old)["kid"]
    with pytest.raises(PassInvalid):
        PassSigner(once.rotated(keep=1).pass_keys).verify(old, "concert", NOW_S)


def test_a_signer_without_keys_or_with_a_weak_one_does_not_start() -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    with pytest.raises(ConfigError):
        PassSigner([])
    with pytest.raises(ConfigError):
        passes.from_pem(passes.to_pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)))
