"""O1: a database that nobody closes is heard on every Python, with the line that opened it."""

import contextlib
import gc
import sqlite3

import pytest


def test_o1_a_forgotten_connection_is_a_warning_that_names_who_opened_it() -> None:
    sqlite3.connect(":memory:")  # a cycle of its own keeps it
    with pytest.warns(
        ResourceWarning, match=r"unclosed database, opened in .*test_o1_a_forgotten.* at\n(.*\n)*.*test_closed_d"
    ):
        gc.collect()


@pytest.mark.filterwarnings("error")
def test_a_closed_connection_is_quiet() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("SELECT 1")
    del connection
    gc.collect()
