"""Passes signed in the test, as a room would."""

from frontrow.waitingroom.credentials.passes import Pass, PassSigner, new_key
from frontrow.waitingroom.ports import PlaceKey

KEY, OTHER_KEY = new_key(), new_key()
SIGNER = PassSigner([KEY])
NOW_S = 1_800_000_000


def minted(signer: PassSigner = SIGNER, *, event: str = "aurora", person: str = "ada", ttl_s: int = 900) -> str:
    return signer.mint(
        Pass(
            event=event,
            person=person,
            place=PlaceKey(0, 1, 7),
            issued_s=NOW_S,
            expires_s=NOW_S + ttl_s,
            since_s=NOW_S,
        )
    )
