"""O4: somebody who read the design documents finds each of their ideas under the document's own word."""

import re
from pathlib import Path

import pytest

from tests.docs.blocks import RUN

PAGE = Path(__file__).parents[2] / "docs" / "from-the-design.md"
IDEAS = [
    "SETNX",
    "keyspace notifications",
    "TTL worker",
    "session token",
    "fence token",
    "`MULTI`/`EXEC`",
    "sorted set",
    "WebSocket",
    "image tiles",
    "priority token",
    "Kafka topics",
    "token bucket of 10",
    "SERIALIZABLE",
    "ZPOPMIN",
    "Adyen",
    "Twilio",
    "1.5 times",
    "99.99 %",
    "spot instances",
]


def rows() -> list[list[str]]:
    """The rows of the page's tables: what was expected, what is here, where, why."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row[0] != "you expected"]


@pytest.mark.parametrize("idea", IDEAS)
def test_an_idea_of_the_documents_is_found_under_its_own_word(idea: str) -> None:
    assert [row for row in rows() if idea.lower() in row[0].lower()]


def test_every_row_says_what_it_is_here_and_where() -> None:
    assert len(rows()) > 50
    assert [row for row in rows() if len(row) != 4 or not row[1] or not row[2]] == []


def test_the_worked_examples_are_programs_that_run() -> None:
    """They are run by `test_every_python_block_of_the_docs_runs`; here none may get lost."""
    code = "\n".join(text for page, _, text in RUN if page == PAGE)
    for example in (
        "5/10s",
        "100/minute",
        "burst=10",
        "1000/hour",
        "ThreadPoolExecutor(10)",
        "eeeaaaaaaw",
        "SeatsTaken",
    ):
        assert example in code
