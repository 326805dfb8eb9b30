"""The section `[serve]` of the file, or `FRONTROW_SERVE_…` variables: where the service listens and what it bounds."""

import ipaddress
from dataclasses import dataclass
from typing import NamedTuple

from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import setting
from frontrow.limits_service.leases import MAX_LEASE_S, MAX_LEASE_UNITS, MAX_LEASES

DECIDE = ("all", "each")
SHOWN_KEYS = ("plain", "hashed")
MAX_RULES = 32  # of one request; the compiled store has room for as many
MIB = 1024 * 1024


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class ServeSettings:
    """Where the service listens, what a request may contain, and what it shows."""

    http: str = setting("127.0.0.1:8071", example='"127.0.0.1:8071"', doc="address for HTTP; off: none")
    grpc: str = setting("127.0.0.1:8081", example='"127.0.0.1:8081"', doc="address for gRPC; off: none")
    token: str = setting("", secret=True, doc="what callers send as Bearer token; empty: none is asked for")
    workers: int = setting(1, low=1, high=64, doc="processes; more than one needs Redis")
    grace_s: float = setting(10.0, low=0.0, high=300.0, doc="how long a stop waits for requests")
    decide: str = setting("all", choices=DECIDE, doc="gRPC: all descriptors or none, or each on its own")
    shadow: bool = setting(False, doc="gRPC: count everything, refuse nothing")
    response_headers: bool = setting(False, doc="gRPC: tell Envoy to add the rate limit headers")
    descriptors: tuple[str, ...] = setting((), example='["ratelimit/*.yaml"]', doc="files of Envoy's service")
    inline_quotas: bool = setting(True, doc="HTTP: callers may name a quota of their own")
    shown_keys: str = setting("plain", choices=SHOWN_KEYS, doc="keys on the page of refused keys")
    opentelemetry: bool = setting(False, doc="export metrics and sampled spans by OTLP")
    max_body_bytes: int = setting(MIB, low=1024, high=64 * MIB)
    max_batch: int = setting(1000, low=1, high=10_000)
    max_key_chars: int = setting(1024, low=16, high=65_536)
    max_connections: int = setting(10_000, low=1, high=1_000_000)
    max_quotas: int = setting(256, low=1, high=10_000, doc="different quotas of callers and overrides that are kept")
    max_lease_units: int = setting(MAX_LEASE_UNITS, low=1, high=1_000_000)
    max_lease_s: float = setting(MAX_LEASE_S, low=1.0, high=3600.0)
    max_leases: int = setting(MAX_LEASES, low=1, high=10_000_000, doc="open leases; the store in memory keeps no more")


def read_address(text: str, where: str) -> Address | None:
    """The address that a setting names, or None if it is `off`."""
    if text == "off":
        return None
    host, separator, port = text.rpartition(":")
    host = host.strip("[]")
    if not separator or not host or not port.isdecimal() or not 0 <= int(port) <= 65_535:
        raise ConfigError(f'{where} must be like "127.0.0.1:8071" or "off", not {text!r}', param=where)
    return Address(host, int(port))
