"""Switches a SQLite file to its WAL, also while others open the same new file."""

import sqlite3
import time
from typing import Final

BUSY_TIMEOUT_S: Final = 5.0


def use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to its WAL. While others open it too, SQLite refuses this at once, without its busy time-out."""
    ends_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:  # bounded by the busy time-out
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends_s:
                raise
            time.sleep(0.005)
