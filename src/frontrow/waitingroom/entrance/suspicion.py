"""How suspicious a caller is, and so how hard the work of its proof: a busy device, a listed network.

A device (by `device_fingerprint`) is busy when it asks for many challenges per minute. Nobody is refused for it.
"""

from collections import Counter
from collections.abc import Sequence

from frontrow.limits import Limiter
from frontrow.waitingroom.entrance.device_fingerprint import fingerprint
from frontrow.waitingroom.entrance.suspect_networks import SuspectNetworks

MAX_SUSPICION = 3
NETWORK_SUSPICION = 2  # of a listed network: 16 times the work


class Suspicion:
    """Counts the challenges of each device, and knows the listed networks."""

    def __init__(self, per_device: Limiter, networks: SuspectNetworks | None) -> None:
        self._per_device, self._networks = per_device, networks
        self.harder: Counter[str] = Counter()  # challenges with harder work, by reason

    def level(self, headers: Sequence[tuple[bytes, bytes]], ip: str, now_us: int) -> int:
        """The suspicion of this caller, 0 to `MAX_SUSPICION`. Counts one challenge of its device."""
        found = 0
        device = fingerprint(headers, ip)
        for level in range(1, MAX_SUSPICION + 1):
            if self._per_device.check(f"{level}:{device}", now_us=now_us).allowed:
                break
            found = level
        if found:
            self.harder["device"] += 1
        if self._networks is not None and self._networks.contains(ip):
            self.harder["network"] += 1
            found = min(MAX_SUSPICION, found + NETWORK_SUSPICION)
        return found

    async def aclose(self) -> None:
        """Close the limit per device."""
        await self._per_device.aclose()
