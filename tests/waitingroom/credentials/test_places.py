"""W1, W5: places any JWT library verifies, and every way to forge one that fails."""

import base64
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import OctKey

from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.waitingroom.credentials.places import Place, PlaceSigner, b64
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.errors import PlaceForeign, PlaceInvalid
from tests.waitingroom.credentials.node_verifier import node_verifies

SECRET = bytes(range(32))
SIGNER = PlaceSigner([SECRET])
PLACE = Place("concert", 0, 1, 12345, 1_763_200_000, "fan-7", "x" * 43)


def forge(header: dict[str, Any], claims: dict[str, Any], secret: bytes = SECRET) -> str:
    signed = b64(json.dumps(header).encode()) + b"." + b64(json.dumps(claims).encode())
    return (signed + b"." + b64(hmac.digest(secret, signed, "sha256"))).decode()


def own_header() -> dict[str, Any]:
    return dict(jwt.get_unverified_header(SIGNER.mint(PLACE)))


def with_payload(payload: bytes) -> str:
    """A correctly signed place with any payload."""
    signed = SIGNER.mint(PLACE).encode().split(b".")[0] + b"." + b64(payload)
    return (signed + b"." + b64(hmac.digest(SECRET, signed, "sha256"))).decode()


@given(
    st.integers(1, 10**12),
    st.integers(0, 2),
    st.integers(1, 99),
    st.text(max_size=64),
    st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,34}\Z"),
)
def test_w1_a_place_survives_signing(position: int, lane: int, epoch: int, person: str, event: str) -> None:
    place = Place(event, lane, epoch, position, 1_763_200_000, person, "")
    assert SIGNER.verify(SIGNER.mint(place), event) == place


def test_w1_pyjwt_joserfc_and_npm_jose_verify_a_place_and_read_the_position_as_sub() -> None:
    text = SIGNER.mint(PLACE)
    by_pyjwt = jwt.decode(text, SECRET, algorithms=["HS256"])
    by_joserfc = joserfc_jwt.decode(text, OctKey.import_key(SECRET), algorithms=["HS256"]).claims
    ask = {"jwt": text, "secret": b64(SECRET).decode(), "algorithms": ["HS256"]}
    wrong = ask | {"secret": b64(b"y" * 32).decode()}
    by_jose, refused = node_verifies(ask, wrong)
    assert by_pyjwt == by_joserfc == by_jose
    assert by_jose["sub"] == "12345"
    assert by_jose["cnf"] == {"jkt": "x" * 43}
    assert refused == {"error": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"}


def test_every_single_bit_flip_fails() -> None:
    text = SIGNER.mint(PLACE).encode()
    survivors = []
    for index in range(len(text) * 8):
        flipped = bytearray(text)
        flipped[index // 8] ^= 1 << index % 8
        try:
            SIGNER.verify(flipped.decode("latin-1"))
            survivors.append(index)
        except PlaceInvalid:
            continue
    assert survivors == []


def test_alg_none_other_algorithms_and_other_headers_are_refused(room_keys: RoomKeys) -> None:
    claims = {"sub": "1", "evt": "concert", "ep": 1, "ln": 0, "iat": 1}
    public_pem = room_keys.pass_keys[0].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = own_header()
    unsigned = b64(json.dumps(header | {"alg": "none"}).encode()) + b"." + b64(json.dumps(claims).encode()) + b"."
    attempts = [
        unsigned.decode(),
        SIGNER.mint(PLACE).rpartition(".")[0] + ".",
        forge(header | {"alg": "none"}, claims),
        forge(header | {"alg": "HS512"}, claims),
        forge(header | {"kid": "other"}, claims),
        forge(header | {"jku": "https://evil.example"}, claims),
        forge(header, claims, public_pem),
        jwt.encode(claims, "z" * 40, algorithm="HS256"),
        jwt.encode(claims, room_keys.pass_keys[0], algorithm="RS256"),
        "",
        "..",
        "a.b.c",
        "é" * 50,
        "\x00" * 100,
    ]
    for text in attempts:
        with pytest.raises(PlaceInvalid) as refused:
            SIGNER.verify(text)
        assert (refused.value.code, refused.value.http_status) == ("place_invalid", 401)


@pytest.mark.parametrize(
    "payload",
    [
        b'{"sub":12345,"evt":"concert","ep":1,"ln":0,"iat":1}',
        b'{"sub":"-1","evt":"concert","ep":1,"ln":0,"iat":1}',
        b'{"sub":"1e3","evt":"concert","ep":1,"ln":0,"iat":1}',
        b'{"sub":"","evt":"concert","ep":1,"ln":0,"iat":1}',
        b'{"sub":"9999999999999999","evt":"concert","ep":1,"ln":0,"iat":1}',
        b'{"sub":"\xd9\xa1","evt":"concert","ep":1,"ln":0,"iat":1}',
        b'{"evt":"concert","ep":1,"ln":0,"iat":1}',
        b'{"sub":"1","evt":"concert","ep":1,"ln":0,"iat":1,"vip":true}',
        b"[]",
        b"not json",
        b"",
    ],
)
def test_a_numeric_sub_and_other_wrong_shapes_are_refused_even_when_signed(payload: bytes) -> None:
    with pytest.raises(PlaceInvalid):
        SIGNER.verify(with_payload(payload))


def test_a_megabyte_is_refused_before_it_is_hashed() -> None:
    with pytest.raises(PlaceInvalid):
        SIGNER.verify("a" * 1_000_000)
    with pytest.raises(PlaceInvalid):
        SIGNER.verify(with_payload(b'{"sub":"1","evt":"' + b"a" * 1_000_000 + b'","ep":1,"ln":0,"iat":1}'))


def test_a_place_for_another_event_or_from_another_room_is_refused() -> None:
    text = SIGNER.mint(PLACE)
    with pytest.raises(PlaceForeign) as refused:
        SIGNER.verify(text, "other")
    assert (refused.value.code, refused.value.http_status) == ("place_foreign", 403)
    with pytest.raises(PlaceInvalid):
        PlaceSigner([b"q" * 32]).verify(text)


def test_secrets_rotate_while_people_wait() -> None:
    old = SIGNER.mint(PLACE)
    both = PlaceSigner([b"n" * 32, SECRET])
    assert both.verify(old) == PLACE
    assert both.verify(both.mint(PLACE)) == PLACE
    with pytest.raises(PlaceInvalid):
        SIGNER.verify(both.mint(PLACE))


def test_short_or_missing_secrets_stop_the_start() -> None:
    for secrets in ([], [b"short"]):
        with pytest.raises(ConfigError):
            PlaceSigner(secrets)


def test_signatures_are_compared_by_the_constant_time_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every refusal, whatever is wrong, goes through one compare_digest over one HMAC of the same text."""
    calls: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def counted(a: bytes, b: bytes) -> bool:
        calls.append((len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr("frontrow.waitingroom.credentials.places.hmac.compare_digest", counted)
    text = SIGNER.mint(PLACE)
    first_wrong = text[:-43] + ("A" if text[-43] != "A" else "B") + text[-42:]
    last_wrong = text[:-2] + ("A" if text[-2] != "A" else "B") + text[-1]
    for wrong in (first_wrong, last_wrong, "x" + text[1:], "", "a.b.c"):
        with pytest.raises(PlaceInvalid):
            SIGNER.verify(wrong)
    assert len(calls) == 5
    assert {expected for expected, _ in calls} == {43}


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise_anything_but_a_refusal(raw: bytes) -> None:
    for text in (raw.decode("latin-1"), base64.urlsafe_b64encode(raw).decode() + ".", with_payload(raw)):
        with pytest.raises(FrontrowError) as refused:
            SIGNER.verify(text)
        assert refused.value.http_status in (401, 403)
