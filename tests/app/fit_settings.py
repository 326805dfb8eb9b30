"""Settings of a platform that the doctor finds fit."""

from pathlib import Path

from frontrow.settings.platform import LedgerSettings, PlatformSettings, RedisSettings, SecretSettings, ServerSettings

GOOD_KEY = "q7Rk0v2mX9ZpLw4TtB8sYc1NfHd6GjUeA3iKoVxQ5rMz"
NO_LEDGER = "postgresql://postgres@127.0.0.1:1/none"


def settings(folder: Path, key: str = GOOD_KEY, redis: str = "", ledger: str = "") -> PlatformSettings:
    return PlatformSettings(
        server=ServerSettings(demo=True, folder=str(folder)),
        secret=SecretSettings(key),
        redis=RedisSettings(redis),
        ledger=LedgerSettings(ledger),
    )
