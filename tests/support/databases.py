"""Databases of a running PostgreSQL server: one for each test, empty or a copy of another."""

import contextlib
import uuid
from collections.abc import Iterator

import psycopg

FILE_COPY_SINCE = 150_000  # the version that can be told to copy files, which is faster than writing them to the log


@contextlib.contextmanager
def database(admin_url: str, template: str = "") -> Iterator[str]:
    """The URL of a new database, dropped afterwards. `template` is the name of the one to copy."""
    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        how = f' TEMPLATE "{template}"' if template else ""
        if admin.info.server_version >= FILE_COPY_SINCE:
            how += " STRATEGY FILE_COPY"
        admin.execute(f'CREATE DATABASE "{name}"{how}')  # type: ignore[arg-type]
    try:
        yield admin_url.rpartition("/")[0] + f"/{name}"
    finally:
        with psycopg.connect(admin_url, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[arg-type]
