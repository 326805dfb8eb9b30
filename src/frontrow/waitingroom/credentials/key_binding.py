"""Binding a place to the browser's own key, so that nobody can use a copied place.

To join, the browser sends the RFC 7638 thumbprint of a P-256 key it cannot export (`cnf`). To claim, it signs a short
proof: a JWT (`typ: place-proof+jwt`, ES256, its public key as `jwk` in the header) over the hash of the place (`ath`),
the event (`evt`) and the time (`iat`).
"""

import hashlib
import hmac
import json
import re
from typing import Any

import jwt

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.credentials.places import Place, b64
from frontrow.waitingroom.model.errors import ProofInvalid

PROOF_TYPE = "place-proof+jwt"
MAX_PROOF_CHARS = 2_048
MAX_AGE_S = 60
MAX_KEY_CHARS = 255
_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{43}")


def check_thumbprint(text: str) -> str:
    """`text` if it looks like an RFC 7638 SHA-256 thumbprint."""
    if not _THUMBPRINT.fullmatch(text):
        raise InvalidInput("cnf is the base64url SHA-256 thumbprint (RFC 7638) of a public key", param="cnf")
    return text


def thumbprint(jwk: dict[str, Any]) -> str:
    """The RFC 7638 thumbprint of a P-256 public key."""
    canonical = json.dumps({name: jwk[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"))
    return b64(hashlib.sha256(canonical.encode()).digest()).decode()


def place_hash(place_jwt: str) -> str:
    return b64(hashlib.sha256(place_jwt.encode()).digest()).decode()


def check_proof(place_jwt: str, place: Place, proof: str | None, now_s: int) -> None:
    """Refuse unless `proof` was made just now for this place with the key that the place is bound to."""
    if not place.jkt:
        return
    if not proof or len(proof) > MAX_PROOF_CHARS:
        raise ProofInvalid("this place is bound to the browser that joined; send its proof")
    try:
        header = jwt.get_unverified_header(proof)
        jwk = {name: str(header["jwk"][name]) for name in ("crv", "kty", "x", "y")}
        if header.get("typ") != PROOF_TYPE or jwk["crv"] != "P-256" or jwk["kty"] != "EC":
            raise ValueError("typ")
        options = {"verify_exp": False, "verify_iat": False, "verify_aud": False}
        claims = jwt.decode(proof, jwt.PyJWK(jwk, algorithm="ES256").key, algorithms=["ES256"], options=options)  # type: ignore[arg-type]
        fresh = abs(now_s - int(claims["iat"])) <= MAX_AGE_S
        right = hmac.compare_digest(str(claims["ath"]).encode(), place_hash(place_jwt).encode())
        if not (fresh and right and claims["evt"] == place.event):
            raise ValueError("claims")
        if not hmac.compare_digest(thumbprint(jwk).encode(), place.jkt.encode()):
            raise ValueError("key")
    except (jwt.PyJWTError, KeyError, TypeError, ValueError, AttributeError):
        raise ProofInvalid("this proof was not made by the browser that joined, for this place, just now") from None


def key_digest(key: str, person: str, jkt: str) -> str:
    """The stored form of an idempotency key. It includes the caller, so that nobody can use another caller's key."""
    if len(key) > MAX_KEY_CHARS:
        raise InvalidInput(f"an idempotency key has at most {MAX_KEY_CHARS} characters", param="Idempotency-Key")
    return hashlib.blake2s(f"{key}\n{person}\n{jkt}".encode(), digest_size=16).hexdigest()
