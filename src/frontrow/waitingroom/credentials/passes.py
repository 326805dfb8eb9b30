"""Passes: signed JWTs that prove a place was admitted. The shop checks them offline with the published keys (JWKS).

A pass is bound to the event (`aud`) and the person (`sub`), expires after 15 minutes unless the room's settings differ,
and names its place (`plc`), by which it is renewed and given back. Keys rotate: the first signs, all verify.

A pass is signed with RS256, or with EdDSA, which costs about a tenth of the CPU. Each RSA key has an Ed25519 key that
is derived from it. The public keys of both are always published, so the algorithm can be changed at any time. Both
algorithms are deterministic: the same pass has the same bytes, so a repeated claim gets the same text.
"""

import functools
import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from frontrow.core.errors import ConfigError
from frontrow.shared.guest_identity import with_event
from frontrow.waitingroom.credentials.places import b64
from frontrow.waitingroom.model.errors import PassExpired, PassForeign, PassInvalid
from frontrow.waitingroom.ports import PlaceKey

MAX_PASS_CHARS = 4_096
MAX_CACHED = 65_536
RSA_BITS = 2048
ISSUER = "frontrow-room"
ALGORITHMS: Final = ("RS256", "EdDSA")
DOCUMENT_KEY: Final = "now-serving"  # the `kid` of the key that signs the now-serving document, never a pass
_HEADER = {"alg", "kid", "typ"}
_PADDING, _HASH = PKCS1v15(), SHA256()
_SigningKey = rsa.RSAPrivateKey | Ed25519PrivateKey
_encode_claims = msgspec.json.Encoder().encode
_NEEDED = ["sub", "aud", "exp", "iat", "jti", "plc"]


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass as verified. `since_s` is when the visit began; renewals keep it."""

    event: str
    person: str
    place: PlaceKey
    issued_s: int
    expires_s: int
    since_s: int
    jkt: str = ""
    shop: str = ""  # the origin of the only shop it is for, after a hand-over

    @property
    def id(self) -> str:
        return f"{self.event}.{self.place.lane}.{self.place.epoch}.{self.place.position}"


def place_of(visit_id: str) -> tuple[str, PlaceKey]:
    """The event and the place that `Pass.id` names."""
    event, lane, epoch, position = visit_id.rsplit(".", 3)
    return event, PlaceKey(int(lane), int(epoch), int(position))


def new_key() -> rsa.RSAPrivateKey:
    """A fresh signing key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)


def to_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@functools.lru_cache(16)  # loading a key checks its primes, which is slow
def from_pem(pem: bytes) -> rsa.RSAPrivateKey:
    key = load_pem_private_key(pem, None)
    if not isinstance(key, rsa.RSAPrivateKey) or key.key_size < RSA_BITS:
        raise ConfigError(f"passes are signed with an RSA key of at least {RSA_BITS} bits")
    return key


@functools.lru_cache(16)
def ed25519_of(key: rsa.RSAPrivateKey) -> Ed25519PrivateKey:
    """The Ed25519 key that belongs to an RSA key: every server with the same RSA key derives the same one."""
    secret = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return Ed25519PrivateKey.from_private_bytes(HKDF(SHA256(), 32, None, b"frontrow/pass/ed25519").derive(secret))


class PassSigner:
    """Signs passes with the first key and verifies them with all keys. A pass for one shop is signed with RS256."""

    def __init__(self, keys: Sequence[rsa.RSAPrivateKey], algorithm: str = "RS256") -> None:
        if not keys:
            raise ConfigError("passes need at least one RSA key")
        if algorithm not in ALGORITHMS:
            raise ConfigError(f"passes are signed with RS256 or EdDSA, not with {algorithm}", param="pass_algorithm")
        self._algorithm = algorithm
        self._keys = [(_kid(_rsa_jwk(key)), key) for key in keys]
        kid, newest = self._keys[0]
        self._for_shops: tuple[bytes, _SigningKey] = _head("RS256", kid), newest  # every language verifies RS256
        self._signs: tuple[bytes, _SigningKey] = self._for_shops
        if self._algorithm == "EdDSA":
            edwards = ed25519_of(newest)
            self._signs = _head("EdDSA", _kid(_ed25519_jwk(edwards))), edwards
        self._verifier = PassVerifier(self.jwks())

    def mint(self, visit: Pass) -> str:
        """The signed text of a pass; the same pass gives the same text."""
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": visit.event,
            "sub": visit.person,
            "iat": visit.issued_s,
            "exp": visit.expires_s,
            "jti": f"{visit.id}.{visit.expires_s}",
            "plc": [visit.place.lane, visit.place.epoch, visit.place.position],
            "since": visit.since_s,
        }
        if visit.jkt:
            claims["cnf"] = {"jkt": visit.jkt}
        if visit.shop:
            claims["shop"] = visit.shop
        head, key = self._for_shops if visit.shop else self._signs
        signed = head + b64(_encode_claims(claims))  # by hand: the header is always the same
        signature = key.sign(signed, _PADDING, _HASH) if isinstance(key, rsa.RSAPrivateKey) else key.sign(signed)
        text = (signed + b"." + b64(signature)).decode()
        self._verifier.cache(text, visit)
        return text

    def verify(self, text: str, event: str | None, now_s: int) -> Pass:
        return self._verifier.verify(text, event, now_s)

    def read(self, text: str, event: str | None = None) -> Pass:
        """The pass, if one of the keys signed it and it is for `event` (if given), whether or not it has expired."""
        return self._verifier.read(text, event)

    def is_cached(self, text: str) -> bool:
        """Whether the signature of this text was verified before."""
        return self._verifier.is_cached(text)

    def jwks(self) -> dict[str, Any]:
        """The public keys, as served at /.well-known/jwks.json: of both algorithms, for each key."""
        of_both = [jwk for _, key in self._keys for jwk in (_rsa_jwk(key), _ed25519_jwk(ed25519_of(key)))]
        return {"keys": [jwk | {"kid": _kid(jwk)} for jwk in of_both]}


class PassVerifier:
    """Verifies passes with public keys only, as a shop does."""

    def __init__(self, jwks: dict[str, Any]) -> None:
        self._keys = {key["kid"]: (jwt.PyJWK(key).key, key["alg"]) for key in jwks["keys"]}
        self._verified: OrderedDict[str, Pass] = OrderedDict()  # the latest texts with a valid signature

    def cache(self, text: str, visit: Pass) -> None:
        """Skip the signature check of this text from now on: a browser sends its pass with every request."""
        if len(self._verified) >= MAX_CACHED:
            self._verified.popitem(last=False)
        self._verified[text] = visit

    def is_cached(self, text: str) -> bool:
        """Whether the signature of this text was verified before."""
        return text in self._verified

    def verify(self, text: str, event: str | None, now_s: int) -> Pass:
        """The pass, if one of the keys signed it, it is for `event` (if given) and has not expired at `now_s`."""
        visit = self.read(text, event)
        if now_s >= visit.expires_s:
            raise PassExpired("this pass has run out; join again", expires_s=visit.expires_s)
        return visit

    def read(self, text: str, event: str | None) -> Pass:
        """The pass, if one of the keys signed it and it is for `event` (if given)."""
        visit = self._verified.get(text)
        if visit is None:
            visit = self._verify_signature(text)
            self.cache(text, visit)
        if event is not None and visit.event != event:
            raise PassForeign(f"this pass is for another event ({visit.event})", event=visit.event)
        return visit

    def _verify_signature(self, text: str) -> Pass:
        try:
            if len(text) > MAX_PASS_CHARS:
                raise jwt.InvalidTokenError
            header = jwt.get_unverified_header(text)
            if header.keys() != _HEADER or header["typ"] != "JWT":  # no jku, jwk, x5u or crit: nothing to negotiate
                raise jwt.InvalidTokenError
            key, algorithm = self._keys[header["kid"]]
            options = {"require": _NEEDED, "verify_exp": False, "verify_aud": False, "verify_iat": False}
            claims = jwt.decode(text, key, algorithms=[algorithm], issuer=ISSUER, options=options)  # type: ignore[arg-type]
            return _read_claims(claims)
        except (jwt.InvalidTokenError, KeyError, TypeError, ValueError):
            raise PassInvalid("this pass was not issued here; wait for your turn and claim one") from None


def _read_claims(claims: dict[str, Any]) -> Pass:
    lane, epoch, position = (int(part) for part in claims["plc"])
    if not isinstance(claims["aud"], str) or not isinstance(claims["sub"], str):
        raise ValueError("aud and sub are text")
    return Pass(
        event=claims["aud"],
        person=with_event(claims["sub"], claims["aud"]),
        place=PlaceKey(lane, epoch, position),
        issued_s=int(claims["iat"]),
        expires_s=int(claims["exp"]),
        since_s=int(claims["since"]),
        jkt=claims.get("cnf", {}).get("jkt", ""),
        shop=str(claims.get("shop", "")),
    )


def _head(algorithm: str, kid: str) -> bytes:
    return b64(_encode_claims({"alg": algorithm, "kid": kid, "typ": "JWT"})) + b"."


def _rsa_jwk(key: rsa.RSAPrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    n, e = (b64(value.to_bytes((value.bit_length() + 7) // 8)).decode() for value in (numbers.n, numbers.e))
    return {"kty": "RSA", "use": "sig", "alg": "RS256", "n": n, "e": e}


def _ed25519_jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    x = b64(key.public_key().public_bytes_raw()).decode()
    return {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "x": x}


def _kid(jwk: dict[str, str]) -> str:
    """The RFC 7638 thumbprint, shortened."""
    canonical = {name: jwk[name] for name in ("crv", "e", "kty", "n", "x") if name in jwk}
    return b64(hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).digest()[:12]).decode()
