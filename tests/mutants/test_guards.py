"""Every lock and every unique index of the ledger, the waiting room and the limiter has a planted bug that takes it
away."""

import re
from collections.abc import Iterator

from tests.boxoffice.adapters.ledger.unique_rows import unique_names
from tests.mutants.corpus import corpus
from tests.support.sources import ROOT, sources

FOLDERS = (
    "src/frontrow/boxoffice/adapters/ledger",
    "src/frontrow/shared",
    "src/frontrow/waitingroom",
    "packages/limits/src/frontrow/limits/stores",
)
STATEMENT = re.compile(r"-- name: (\w+)")
LOCKED = re.compile(r":for_update|:skip_locked")
BY_HAND = {
    "advisory": re.compile(r"SELECT pg_advisory\w+\("),
    "for update": re.compile(r'(?:"[^"\n]*|\n *ORDER BY .*)FOR UPDATE'),
    "begin immediate": re.compile(r'"[^"\n]*BEGIN IMMEDIATE'),
}
# Guards whose loss no race can show, and why.
NO_RACE = {
    "due_holds": "`end_holds` ends each hold by a conditional update; skipping others' rows only saves waiting",
    "one_waiting_entry_per_fan": "`one_entry_per_fan` says more; older servers rely on this one",
    "engine/statements.py for update": "writes the words that the statements ask for",
    "engine/statements.py for update 2": "likewise",
    "sql/postgresql.sql for update": "skips expired counts that another server deletes at the moment; it saves waiting",
    "console/sqlite_book.py begin immediate": "the first statement writes, and so locks the file as well",
    "archives.py begin immediate": "SQLite refuses to write on what another has changed: it fails and loses nothing",
    "stores/sqlite.py begin immediate": "SQLite refuses the second writer, which tries again: it saves the try",
    "stores/sqlite.py begin immediate 2": "the first statement writes, and so locks the file as well",
}


def locks() -> Iterator[str]:
    """The locks that the sources name: statements, and each that a file has by hand."""
    for path in sources(*FOLDERS):
        if path.suffix == ".sql" and path.name != "schema.sql":
            for block in re.split(r"\n(?=-- name: )", path.read_text("utf-8")):
                if LOCKED.search(block):
                    yield STATEMENT.match(block)[1]  # type: ignore[index]
        if path.suffix in (".py", ".sql"):
            text, name = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
            short = "/".join(name.split("/")[-2:]).removeprefix("ledger/")
            for kind, pattern in BY_HAND.items():
                for number, _ in enumerate(pattern.finditer(text), 1):
                    yield f"{short} {kind}" + (f" {number}" if number > 1 else "")


def test_every_lock_and_index_has_a_planted_bug_or_a_reason() -> None:
    planted = {mutant.guard for mutants in corpus().values() for mutant in mutants if mutant.guard}
    found = {*locks(), *unique_names()}
    assert found - planted - NO_RACE.keys() == set(), "plant a bug that takes it away, or say why no race can show it"
    assert planted <= found, "a planted bug for a guard that is not there any more"
    assert planted.isdisjoint(NO_RACE)
    assert NO_RACE.keys() <= found
