"""Who sends a request, according to the network: the client's address as a key that nobody can dodge or forge.

IPv4 stays as it is. IPv4 inside IPv6 (`::ffff:192.0.2.1`) becomes the same key. Any other IPv6 address counts as its
/64 network, because one household owns 2^64 addresses. `X-Forwarded-For` is read only when the peer is a configured
proxy, and from the right, because what a client wrote stands left of what the proxies added.
"""

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton

from frontrow.core.errors import ConfigError, InvalidInput

MAX_HOPS = 32  # the most proxies that a request can have passed; a longer header is an attack
UNIX_PEER = "unix"  # the name, among the trusted proxies, of a peer without an address (a unix socket)
_V4_IN_V6 = b"\x00" * 10 + b"\xff\xff"
_CACHED = 16_384


@lru_cache(maxsize=_CACHED)
def ip_key(address: str, ipv6_prefix: int = 64) -> str:
    """The key of an address: IPv4 as written, IPv6 as its network. Raises `InvalidInput` if it is neither."""
    packed = packed_ip(address)
    if packed is None:
        raise InvalidInput(f"{address[:60]!r} is not an IP address like 192.0.2.1 or 2001:db8::1", param="ip")
    if len(packed) == 4:
        return inet_ntop(AF_INET, packed)
    kept = int.from_bytes(packed, "big") >> (128 - ipv6_prefix) << (128 - ipv6_prefix)
    return f"{inet_ntop(AF_INET6, kept.to_bytes(16, 'big'))}/{ipv6_prefix}"


def packed_ip(text: str) -> bytes | None:
    """4 or 16 bytes, or None if it is not an address. Removes ports, brackets and zones; IPv4 in IPv6 becomes IPv4."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    text = text.partition("%")[0]
    try:
        if ":" not in text:
            return inet_pton(AF_INET, text)
        packed = inet_pton(AF_INET6, text)
    except (OSError, ValueError):  # ValueError: a NUL or a character no address has
        return None
    return packed[12:] if packed.startswith(_V4_IN_V6) else packed


class Networks:
    """A set of addresses and networks, like `10.0.0.0/8`. `param` names the option that they come from."""

    def __init__(self, texts: Iterable[str], *, param: str) -> None:
        self._ranges = [_range(text.strip(), param) for text in texts]
        self.contain: Callable[[str], bool] = lru_cache(maxsize=1024)(self._contain)

    def _contain(self, address: str) -> bool:
        packed = packed_ip(address)
        if packed is None:
            return False
        number = int.from_bytes(packed, "big")
        return any(size == len(packed) and number & mask == base for size, base, mask in self._ranges)


def _range(text: str, param: str) -> tuple[int, int, int]:
    """(bytes of an address, network as a number, mask) of `10.0.0.0/8`."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        message = f"{param}: {text!r} is not an address or network ({error})"
        also = f", {UNIX_PEER}" if param == "trusted_proxies" else ""
        raise ConfigError(f"{message}; valid: 10.0.0.0/8, 192.0.2.7{also}", param=param) from None
    if network.version == 6 and network.prefixlen >= 96 and network.network_address.ipv4_mapped:
        network = ipaddress.ip_network(f"{network.network_address.ipv4_mapped}/{network.prefixlen - 96}")
    return network.max_prefixlen // 8, int(network.network_address), int(network.netmask)


class ClientAddress:
    """Finds the client's address of a request. Only configured proxies are believed."""

    def __init__(self, trusted_proxies: Iterable[str] = (), *, ipv6_prefix: int = 64) -> None:
        if not 1 <= ipv6_prefix <= 128:
            raise ConfigError(f"ipv6_prefix must be from 1 to 128, not {ipv6_prefix}; 64 is almost always right")
        self._prefix = ipv6_prefix
        proxies = [proxy.strip() for proxy in trusted_proxies]
        self._trust_unix = UNIX_PEER in proxies
        self._in_trusted = Networks((proxy for proxy in proxies if proxy != UNIX_PEER), param="trusted_proxies").contain
        self.trusts_nobody = not proxies
        self.direct: Callable[[str], str | None] = lru_cache(maxsize=_CACHED)(self._direct)

    def key(self, peer: str | None, forwarded: Sequence[str] = ()) -> str | None:
        """The client's key from the peer's address and the `X-Forwarded-For` values; None if there is no address."""
        if self.is_proxy(peer):
            nearest = self._behind_proxies(peer, forwarded)
            return ip_key(nearest, self._prefix) if nearest else None
        return self.direct(peer) if peer else None

    def address(self, peer: str | None, forwarded: Sequence[str] = ()) -> str | None:
        """The client's own address, where `key` may name its network."""
        return self._behind_proxies(peer, forwarded) if self.is_proxy(peer) else peer

    def is_proxy(self, peer: str | None) -> bool:
        """Whether this peer's `X-Forwarded-For` is believed."""
        return self._in_trusted(peer) if peer else self._trust_unix

    def _direct(self, peer: str) -> str | None:
        """A peer without an address (a test client's name) was named by the server, not by the client: use the name."""
        return peer.strip() or None if packed_ip(peer) is None else ip_key(peer, self._prefix)

    def _behind_proxies(self, peer: str | None, forwarded: Sequence[str]) -> str | None:
        """Walk from the right past our own proxies. The first address that is not ours is the client."""
        nearest = peer or None
        hops = ",".join(forwarded).split(",") if forwarded else []
        for hop in hops[: -MAX_HOPS - 1 : -1]:
            if packed_ip(hop) is None:  # a proxy passed on nonsense: limit the last valid hop
                break
            nearest = hop
            if not self._in_trusted(hop.strip()):
                break
        return nearest.strip() if nearest else None
