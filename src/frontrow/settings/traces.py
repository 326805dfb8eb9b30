"""`[traces]`: where OpenTelemetry spans go."""

from dataclasses import dataclass

from frontrow.core.settings_loader import setting


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """`[traces]`: where spans go."""

    endpoint: str = setting("", example="http://collector:4318/v1/traces", doc="empty: no traces")
    sample: float = setting(0.01, low=0.0, high=1.0, doc="share of the requests traced")
