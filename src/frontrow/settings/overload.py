"""`[overload]`: the bounds of one server process."""

import dataclasses
from typing import Final

from frontrow.core.settings_loader import setting

STREAM_SHARE: Final = 0.9  # of the connections: above it nobody gets a live stream, so that short requests find room


@dataclasses.dataclass(frozen=True, slots=True)
class OverloadSettings:
    """`[overload]`: the bounds of one process."""

    max_connections: int = setting(18_000, low=1, high=1_000_000, doc="connections, live streams among them")
    max_connections_per_address: int = setting(
        1_000, low=1, high=1_000_000, doc="connections of one address (IPv6: /64), unless it is a proxy of ours"
    )
    max_streams_per_address: int = setting(
        1_000, low=1, high=1_000_000, doc="live streams of one address; who gets none polls"
    )
    uncapped: tuple[str, ...] = setting(
        ("127.0.0.0/8", "::1"), example='["127.0.0.0/8"]', doc="addresses and networks without these two caps"
    )
    max_in_flight: int = setting(8_000, low=1, high=1_000_000, doc="requests being answered at once")
    max_lag_ms: int = setting(50, low=1, high=10_000, doc="a standing delay of the event loop above it is overload")
    max_wait_ms: int = setting(1_000, low=10, high=60_000, doc="the same for answers that wait for a store")
    retry_after_s: int = setting(2, low=1, high=60, doc="Retry-After of a shed request; its connection rests as long")
    deadline_s: float = setting(10.0, low=0.1, high=600, doc="for an answer")
    pay_deadline_s: float = setting(30.0, low=0.1, high=600, doc="for an answer about money")

    @property
    def connections_with_streams(self) -> int:
        """Above so many connections nobody gets one more live stream."""
        return int(STREAM_SHARE * self.max_connections)
