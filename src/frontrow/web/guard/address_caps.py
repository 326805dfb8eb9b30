"""How much one address may have open at once: connections, and live streams.

One address must not fill the server for everybody else. IPv6 counts per /64 network, as everywhere (`ip_key`). Loopback
and our own proxies are not capped, because they carry other people.
"""

import ipaddress
from collections.abc import Callable, Sequence

from frontrow.limits.http.client_address import Networks, ip_key, packed_ip


class AddressCaps:
    """Counts what each address has open. `is_proxy` and the networks of `uncapped` are never full."""

    def __init__(
        self, most: int, uncapped: Sequence[str] = (), is_proxy: Callable[[str], bool] = lambda peer: False
    ) -> None:
        self._most = most
        self._uncapped = Networks(map(_whole_network, uncapped), param="overload.uncapped").contain
        self._is_proxy = is_proxy
        self._open: dict[str, int] = {}

    def key_of(self, peer: str) -> str:
        """What a peer is counted under; empty for a peer without an address (a unix socket), which is not counted."""
        return ip_key(peer) if packed_ip(peer) is not None else ""

    def fullness(self, key: str) -> float:
        """What this address has open as a share of what it may have; 0 if nothing bounds it."""
        opened = self._open.get(key, 0)
        return 0.0 if opened < self._most or self.is_free(key) else opened / self._most

    def is_full(self, key: str) -> bool:
        """Whether this address may open nothing more."""
        return self.fullness(key) >= 1

    def add(self, key: str) -> None:
        if key:
            self._open[key] = self._open.get(key, 0) + 1

    def remove(self, key: str) -> None:
        left = self._open.get(key, 0) - 1
        if left > 0:
            self._open[key] = left
        else:
            self._open.pop(key, None)

    def is_free(self, key: str) -> bool:
        """Whether nothing bounds this address. A key may be a /64 network: its first address stands for it."""
        address = key.partition("/")[0]
        return packed_ip(address) is None or self._uncapped(address) or self._is_proxy(address)


def _whole_network(text: str) -> str:
    """An IPv6 network of at least /64, because addresses are counted so; anything else as it is."""
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return text  # refused by `Networks`, in its words
    if network.version == 6 and network.prefixlen > 64 and network.network_address.ipv4_mapped is None:
        network = network.supernet(new_prefix=64)
    return str(network)
