"""`[work]`: where `frontrow work` says that it lives."""

from dataclasses import dataclass

from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import setting


@dataclass(frozen=True, slots=True)
class WorkSettings:
    """`[work]`: settings of `frontrow work` alone."""

    health: str = setting(
        "", example="127.0.0.1:8001", doc="where /healthz, /readyz and /metrics answer; empty: nowhere"
    )


def health_address(text: str) -> tuple[str, int]:
    """The host and the port of `work.health`. Port 0: any free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"work.health is {text[:80]!r}; write a host and a port: 127.0.0.1:8001", param="work.health")
    return host.removeprefix("[").removesuffix("]"), int(port)
