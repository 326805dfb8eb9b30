"""A browser that binds its place to a key."""

from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from frontrow.waitingroom.credentials.key_binding import PROOF_TYPE, place_hash
from frontrow.waitingroom.credentials.places import b64

NOW_S = 1_763_200_000


class Browser:
    """A browser with a key it cannot export."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        numbers = self.key.public_key().public_numbers()
        x, y = (b64(n.to_bytes(32)).decode() for n in (numbers.x, numbers.y))
        self.jwk = {"kty": "EC", "crv": "P-256", "x": x, "y": y}

    def proof(self, place_jwt: str, **changes: Any) -> str:
        claims = {"ath": place_hash(place_jwt), "evt": "concert", "iat": NOW_S} | changes.get("claims", {})
        header = {"typ": PROOF_TYPE, "jwk": self.jwk} | changes.get("header", {})
        return jwt.encode(claims, self.key, algorithm="ES256", headers=header)
