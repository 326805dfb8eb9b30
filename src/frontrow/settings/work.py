"""`[work]`: where `frontrow work` says that it lives."""

from dataclasses import dataclass

from frontrow.core.settings_loader import setting
from frontrow.shared.listening import read_address


@dataclass(frozen=True, slots=True)
class WorkSettings:
    """`[work]`: settings of `frontrow work` alone."""

    health: str = setting(
        "", example="127.0.0.1:8001", doc="where /healthz, /readyz and /metrics answer; empty: nowhere"
    )


def health_address(text: str) -> tuple[str, int]:
    """The host and the port of `work.health`. Port 0: any free one."""
    return read_address(text, "work.health", "127.0.0.1:8001")
