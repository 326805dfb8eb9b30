"""Which stores a platform uses: its ledger, seat claims, frame logs, and what it keeps in Redis beside them.

Without Redis everything is in this process, over one SQLite file. Drivers that not every server needs are imported
when they are opened.
"""

import os
import secrets
from typing import TYPE_CHECKING, Final

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.seats.map.frame_log import MemoryFrameLogs
from frontrow.boxoffice.seats.ports.seat_map import FrameLogs
from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError, FrontrowError, Unavailable
from frontrow.core.settings_loader import named
from frontrow.settings.platform import PlatformSettings
from frontrow.shared.derived_keys import Secrets

if TYPE_CHECKING:
    from frontrow.boxoffice.adapters.claims.redis_memory import RedisMemory
    from frontrow.boxoffice.adapters.ledger.recent_changes import RedisRecentChanges

REFUSED_BY_POSTGRES: Final = ("28", "3D")  # a wrong user or password, or no such database: waiting would not help


async def open_platform_ledger(settings: PlatformSettings) -> SqlLedger:
    """Make the folder and open the ledger. An error says in one sentence what is wrong with which setting."""
    try:
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"server.folder cannot be used: {error.strerror}", param="server.folder") from None
    try:
        with named("ledger.url"):
            ledger = await open_ledger(
                settings.ledger_url,
                warm=True,
                read_url=settings.ledger.read_url,
                read_max_lag_s=settings.ledger.read_max_lag_s,
            )
    except FrontrowError:
        raise
    except Exception as error:  # the driver's own, of any class; its words may hold no password, its address might
        why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        if getattr(error, "sqlstate", "")[:2] in REFUSED_BY_POSTGRES:
            raise ConfigError(f"ledger.url: {why}", param="ledger.url") from None
        raise Unavailable(f"the ledger of ledger.url does not answer: {why}") from None
    return ledger


def open_claims(redis_url: str) -> SeatClaims:
    """The claim store: the servers' Redis, or one in this process that is filled from the ledger."""
    if not redis_url:
        return MemoryClaims()
    from frontrow.boxoffice.adapters.claims.redis import RedisClaims

    return RedisClaims(redis_url)


def open_frame_logs(settings: PlatformSettings, clock: Clock) -> FrameLogs:
    """The logs of the events' maps."""
    if not settings.shared:
        return MemoryFrameLogs(clock)
    from frontrow.boxoffice.adapters.seat_map.redis_frame_log import RedisFrameLogs

    return RedisFrameLogs(settings.redis.url)


def open_recent_changes(settings: PlatformSettings) -> "RedisRecentChanges":
    """Who changed something a moment ago, and must not be answered by a replica that does not know it yet."""
    from frontrow.boxoffice.adapters.ledger.recent_changes import RedisRecentChanges

    return RedisRecentChanges(settings.redis.url, settings.ledger.read_max_lag_s)


def open_redis_memory(settings: PlatformSettings) -> "RedisMemory":
    from frontrow.boxoffice.adapters.claims.redis_memory import RedisMemory

    return RedisMemory(settings.redis.url)


def read_secrets(settings: PlatformSettings) -> Secrets:
    """The secret key. The demo makes its own and keeps it, so that a restart loses no session."""
    if settings.secret.key:
        return Secrets(settings.secret.key.encode())
    path = settings.folder / "secret.key"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(48))
    return Secrets(path.read_bytes())
