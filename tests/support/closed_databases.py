"""SQLite connections that nobody closes are warnings, and so failures, on every Python.

Python 3.13 warns by itself, in whichever test runs when the connection is found. This says which test and which line
opened it, also on older ones.
"""

import os
import sqlite3
import sys
import traceback
import warnings
from typing import Any, Final

FRAMES: Final = 12


class WatchedConnection(sqlite3.Connection):
    """Remembers in which test and where it was opened. Warns if it is forgotten without being closed."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self._closed = True  # until it is open
        self._opened_in = os.environ.get("PYTEST_CURRENT_TEST", "no test")
        self._opened_at = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(1)), limit=FRAMES)
        super().__init__(*given, **options)
        self._closed = False

    def close(self) -> None:
        super().close()
        self._closed = True

    def __del__(self) -> None:
        if self._closed:
            return
        self.close()
        frames = "".join(reversed(self._opened_at.format()))
        warnings.warn(
            f"unclosed database, opened in {self._opened_in} at\n{frames}", ResourceWarning, stacklevel=1, source=self
        )


def watch_databases() -> None:
    """Have every `sqlite3.connect` of this process make watched connections."""
    connect = sqlite3.connect
    if getattr(connect, "watches", False):
        return

    def watched_connect(*given: Any, **options: Any) -> sqlite3.Connection:
        options.setdefault("factory", WatchedConnection)
        return connect(*given, **options)

    watched_connect.watches = True  # type: ignore[attr-defined]
    sqlite3.connect = watched_connect  # type: ignore[assignment]
    sqlite3.dbapi2.connect = watched_connect  # type: ignore[assignment]
