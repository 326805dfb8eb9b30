"""Signed places: JWT, HS256, a fixed header per key, the position as `sub` (a string, as the standard asks).

Any JWT library verifies them. This module signs and verifies them by hand in about 3 µs and negotiates nothing: the
header must equal one of our headers, and the signature is compared in its text form and in constant time, so not even
the unused bits of the last base64 character can be flipped. A place has no expiry: people wait for hours, and the
window decides. `jkt` binds a place to a key the browser cannot export (see `key_binding`).
"""

import binascii
import hashlib
import hmac
from array import array
from collections.abc import Sequence

import msgspec

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.model.errors import PlaceForeign, PlaceInvalid

MIN_SECRET_BYTES = 32
MAX_PLACE_CHARS = 1_024
MAX_PERSON_CHARS = 64
MAX_CACHED = 16_384  # verified places per generation; two generations take some 20 MB at most
SEEN_ONCE = 65_536  # hashes of places that were verified once


class Place(msgspec.Struct, frozen=True, gc=False):
    """One person's numbered place, as verified. `position` is the arrival number before a draw."""

    event: str
    lane: int
    epoch: int
    position: int
    issued_s: int
    person: str = ""
    jkt: str = ""


class _Cnf(msgspec.Struct, forbid_unknown_fields=True):
    jkt: str


class _Claims(msgspec.Struct, forbid_unknown_fields=True):
    sub: str
    evt: str
    ep: int
    ln: int
    iat: int
    per: str = ""
    cnf: _Cnf | None = None


_decode_claims = msgspec.json.Decoder(_Claims).decode
_encode_text = msgspec.json.Encoder().encode


_b2a, _a2b = binascii.b2a_base64, binascii.a2b_base64
_URL_SAFE, _PLAIN = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")


def b64(raw: bytes) -> bytes:
    """base64url without padding."""
    return _b2a(raw, newline=False).translate(_URL_SAFE, b"=")


def unb64(text: bytes) -> bytes:
    """The bytes of base64url text without padding."""
    return _a2b(text.translate(_PLAIN) + b"=" * (-len(text) % 4))


class _Hmac:
    """HMAC-SHA256 of one secret with both padded blocks hashed beforehand: half the cost of `hmac.digest`."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes) -> None:
        block = (hashlib.sha256(secret).digest() if len(secret) > 64 else secret).ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block)).copy
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block)).copy

    def sign(self, text: bytes) -> bytes:
        """The signature in the form of a JWT."""
        inner, outer = self._inner(), self._outer()
        inner.update(text)
        outer.update(inner.digest())
        return _b2a(outer.digest(), newline=False).translate(_URL_SAFE, b"=")


class PlaceSigner:
    """Signs places with the first secret and verifies them with all, so a secret can be replaced while people wait."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        if not secrets or any(len(secret) < MIN_SECRET_BYTES for secret in secrets):
            raise ConfigError(f"places need at least one secret of {MIN_SECRET_BYTES} bytes or more")
        self._by_header = {_header(secret): _Hmac(secret) for secret in secrets}
        self._newest = self._by_header[_header(secrets[0])]
        self._prefix = _header(secrets[0]) + b"."
        self.recent: dict[str, Place] = {}  # read by `PlaceStatuses.json_of`; only `verify` writes
        self._older: dict[str, Place] = {}
        self._seen_once = array("q", bytes(8 * SEEN_ONCE))

    def mint(self, place: Place) -> str:
        """The signed text of a place."""
        return self.mint_bytes(place).decode()

    def mint_bytes(self, place: Place) -> bytes:
        signed = self._prefix + b64(_payload(place))
        return b"%b.%b" % (signed, self._newest.sign(signed))

    def verify(self, text: str, event: str | None = None) -> Place:
        """The place, if one of our secrets signed exactly this text; for `event`, if given. Raises PlaceInvalid or
        PlaceForeign.

        People send the same text again and again, so a text is cached when it is verified for the second time. In a
        crowd larger than the cache, caching at the first time would only cost. A lookup by the whole (keyed) hash
        reveals nothing about how much of a forged text was right."""
        place = self.recent.get(text) or self._verify_and_cache(text)
        if event is not None and place.event != event:
            raise PlaceForeign(f"this place is for another event ({place.event})", event=place.event)
        return place

    def _verify_and_cache(self, text: str) -> Place:
        place = self._older.get(text)
        if place is None:
            place, seen = self._verify_signature(text), hash(text)
            if self._seen_once[seen % SEEN_ONCE] != seen:
                self._seen_once[seen % SEEN_ONCE] = seen
                return place
        if len(self.recent) >= MAX_CACHED:
            self._older, self.recent = self.recent, {}
        self.recent[text] = place
        return place

    def _verify_signature(self, text: str) -> Place:
        try:
            raw = text.encode("ascii") if len(text) <= MAX_PLACE_CHARS else b""
            signed, _, signature = raw.rpartition(b".")
            header, _, payload = signed.partition(b".")
        except UnicodeEncodeError:
            header = payload = signed = signature = b""
        # An unknown header is compared with our key all the same, so that every wrong text costs the same time.
        key = self._by_header.get(header)
        right = (key or self._newest).sign(signed)
        if not hmac.compare_digest(right, signature) or key is None:
            raise PlaceInvalid("this place was not issued here; join to get one")
        return _read_payload(payload)


def _header(secret: bytes) -> bytes:
    kid = b64(hashlib.sha256(b"frontrow place key" + secret).digest()[:6])
    return b64(b'{"alg":"HS256","typ":"JWT","kid":"%b"}' % kid)


def _payload(place: Place) -> bytes:
    numbers = (place.position, place.event.encode(), place.epoch, place.lane, place.issued_s)
    head = b'{"sub":"%d","evt":"%b","ep":%d,"ln":%d,"iat":%d' % numbers
    if not (place.person or place.jkt):
        return head + b"}"
    tail = b""
    if place.person:
        tail += b',"per":' + _encode_text(place.person)
    if place.jkt:
        tail += b',"cnf":{"jkt":' + _encode_text(place.jkt) + b"}"
    return head + tail + b"}"


def _read_payload(payload: bytes) -> Place:
    """The claims of a payload with a valid signature. Wrong types (a numeric `sub`) are refused."""
    try:
        claims = _decode_claims(_a2b(payload.translate(_PLAIN) + b"=="))  # our own text: excess padding is fine
        text = claims.sub
        if not (text.isdigit() and text.isascii() and len(text) <= 15):
            raise ValueError("sub")
        position = int(text)
    except (ValueError, msgspec.MsgspecError):
        raise PlaceInvalid("this place was not issued here; join to get one") from None
    if claims.cnf is None and not claims.per:
        return Place(claims.evt, claims.ln, claims.ep, position, claims.iat)
    jkt = claims.cnf.jkt if claims.cnf else ""
    return Place(claims.evt, claims.ln, claims.ep, position, claims.iat, claims.per, jkt)
