"""The file that shows the ledger's tables says what the migrations make."""

import re
from pathlib import Path

import frontrow.boxoffice.adapters.ledger as ledger
from docsite.ledger_schema import schema


def plain(text: str) -> str:
    """Without what versions of SQLite write differently: white space and quotes around names."""
    return re.sub(r"[\s\"`]", "", text)


def test_the_file_of_tables_and_indexes_is_what_the_migrations_make() -> None:
    file = Path(str(ledger.__file__)).with_name("schema.sql")
    assert plain(file.read_text("utf-8")) == plain(schema()), f"run: python -m docsite.ledger_schema > {file.name}"
