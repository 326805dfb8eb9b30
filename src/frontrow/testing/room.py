"""The waiting room for tests: passes without a room, and a room's store in memory."""

import functools

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from frontrow.core.clock import US_PER_S, Clock
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.credentials.passes import Pass, PassSigner, new_key
from frontrow.waitingroom.ports import PlaceKey
from frontrow.waitingroom.protect import PassKeys
from frontrow.waitingroom.stores.memory import MemoryRoomStore

__all__ = ["MemoryRoomStore", "RoomPasses"]


class RoomPasses:
    """Issues passes for one event, as its waiting room does.

    Build the `Guard` of your shop with `keys` and `clock`, and send a pass in the header `Frontrow-Pass`.
    """

    def __init__(self, event: str, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or ManualClock()
        self._event = event
        self._signer = PassSigner([_key()])
        self.keys = PassKeys(self._signer.jwks(), event)
        self._issued = 0

    def issue(self, person: str = "fan_1", ttl_s: int = 900) -> str:
        """A pass that is valid from now on for `ttl_s` seconds."""
        self._issued += 1
        now_s = self.clock() // US_PER_S
        return self._signer.mint(
            Pass(
                event=self._event,
                person=person,
                place=PlaceKey(0, 1, self._issued),
                issued_s=now_s,
                expires_s=now_s + ttl_s,
                since_s=now_s,
            )
        )


@functools.cache
def _key() -> RSAPrivateKey:
    """One key for all tests of a process: making one takes a while."""
    return new_key()
