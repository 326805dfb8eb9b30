"""Ledger URLs: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://user@host:5432/name`."""

from pathlib import Path

from frontrow.core.errors import ConfigError
from frontrow.core.postgres_url import check_postgres_url

EXAMPLES = "sqlite:///frontrow.db or postgresql://frontrow@127.0.0.1:5432/frontrow"


def is_postgres(url: str) -> bool:
    """Whether `url` is a PostgreSQL URL. A ConfigError when it is not a ledger URL."""
    if url.startswith(("postgresql://", "postgres://")):
        check_postgres_url(url)
        return True
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return False
    shown = url.rpartition("@")[2][:60]  # a password is before the @
    raise ConfigError(f"{shown!r} is not a ledger; it must be like {EXAMPLES}", param="ledger")


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:///` URL."""
    return Path(url.removeprefix("sqlite:///"))
