"""Networks whose devices get harder work at the entrance, from a file that the operator feeds (data centres, proxies).

A listed network is a signal and never a verdict: people use VPNs and office proxies. The file has one address or
network per line; `#` begins a comment. It is read again within a minute of a change, in a thread. If it cannot be read
any more, the last list stays in use, and the log says so.
"""

import ipaddress
import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path

from frontrow.core.errors import ConfigError
from frontrow.limits.http.client_address import packed_ip

MAX_NETWORKS = 2_000_000
LOOK_EVERY_S = 60.0

log = logging.getLogger("frontrow.room")


class NetworkList:
    """Sorted ranges of addresses; a look-up is two bisections, however long the list is."""

    def __init__(self, lines: Iterable[str], source: str = "suspect_networks") -> None:
        ranges: dict[int, list[tuple[int, int]]] = {4: [], 16: []}
        self.count = 0
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip()
            if not text:
                continue
            self.count += 1
            if self.count > MAX_NETWORKS:
                raise ConfigError(f"{source} has more than {MAX_NETWORKS:,} networks", param="room.suspect_networks")
            try:
                network = ipaddress.ip_network(text, strict=False)
            except ValueError:
                raise ConfigError(
                    f"{source}, line {number}: {text[:60]!r} is not an address or network like 192.0.2.0/24",
                    param="room.suspect_networks",
                ) from None
            first = int(network.network_address)
            ranges[network.max_prefixlen // 8].append((first, first + network.num_addresses - 1))
        self._ranges = {size: _merge(sorted(found)) for size, found in ranges.items()}

    def contains(self, address: str) -> bool:
        """Whether an address, or the /64 that stands for one, begins inside a listed network."""
        packed = packed_ip(address.partition("/")[0])
        if packed is None:
            return False
        firsts, lasts = self._ranges[len(packed)]
        number = int.from_bytes(packed, "big")
        at = bisect_right(firsts, number) - 1
        return at >= 0 and number <= lasts[at]


def _merge(ranges: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The first and last addresses of ranges that do not overlap, ascending."""
    firsts: list[int] = []
    lasts: list[int] = []
    for first, last in ranges:
        if lasts and first <= lasts[-1] + 1:
            lasts[-1] = max(lasts[-1], last)
        else:
            firsts.append(first)
            lasts.append(last)
    return firsts, lasts


class SuspectNetworks:
    """The operator's file, read again when it changes."""

    def __init__(self, path: str | Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = Path(path)
        self._monotonic = monotonic
        self._looked_s = monotonic()
        self._reading: threading.Thread | None = None
        try:
            self._changed_ns = self._path.stat().st_mtime_ns
            self._list = self._read()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the list of networks {self._path} cannot be read: {error}", param="room.suspect_networks"
            ) from None

    def contains(self, address: str) -> bool:
        """Whether the file lists this address."""
        if self._monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = self._monotonic()
            if self._reading is None or not self._reading.is_alive():
                self._reading = threading.Thread(target=self._read_again, name="suspect networks", daemon=True)
                self._reading.start()
        return self._list.contains(address)

    def _read(self) -> NetworkList:
        return NetworkList(self._path.read_text("utf-8").splitlines(), str(self._path))

    def _read_again(self) -> None:
        try:
            changed_ns = self._path.stat().st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            self._list, self._changed_ns = self._read(), changed_ns
            log.info("list of networks read again", extra={"networks": self._list.count})
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            log.warning("the list of networks cannot be read again; the last one stays in use: %s", error)
