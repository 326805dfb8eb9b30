"""Named SQL statements, written once for both dialects (holds/hold_statements.sql, …) and rendered for the one in use.

A header `-- name: take_seats(event_id text, seat_index int)` names a statement and the columns of its rows. Markers in
the text are replaced:

- `:rows` becomes a table `r` of all rows of a batch: arrays through `unnest` on PostgreSQL, one JSON document through
  `json_each` on SQLite.
- Single parameters (`:now_us int`) are listed after the header and appear in the text under their name.
- `:booking`, `:payment` and `:refund` become the columns of one; `:event_filters` and `:word_filters` become the
  conditions of an event search.
- Text in braces is for a ledger whose tables are partitioned by event (`partitions.py`), and is left out elsewhere. So
  is `:event_of r.booking_id`, which looks up the event of a booking: it is `d.event_id` then.
- `:skip_locked` lets workers skip rows that another worker has locked. `:for_update` locks rows until the transaction
  ends.

A header that ends with `row by row` says that each row is decided independently. SQLite then gets the rows in pieces as
bound values, because its JSON functions parse a row again for every column (10 of 17 us of a booking).
"""

import functools
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib import resources
from typing import Any, Final, cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row

BOOKING_COLUMNS: Final = (
    "b.id, b.event_id, b.fan, b.state, b.fence, b.seats, b.amount_minor, b.currency, b.visit_id, "
    "b.created_at_us, b.changed_at_us, b.hold_expires_at_us, b.confirmed_at_us, b.price_lines, "
    "b.origin, b.sold_by, b.payment_begun_at_us, b.session"
)
PAYMENT_COLUMNS: Final = (
    "p.id, p.booking_id, p.attempt, p.provider, p.amount_minor, p.currency, p.payment_state, p.provider_ref, p.method, "
    "p.reason, p.call, p.tries, p.retry_at_us, p.version, p.created_at_us, p.changed_at_us, p.declines, p.failure, "
    "p.account, p.paid_with, p.agreed_at_us, p.offered, p.fee_minor, p.transfer_to, "
    "p.reminded_at_us"
)
REFUND_COLUMNS: Final = (
    "f.id, f.booking_id, f.payment_id, f.number, f.amount_minor, f.currency, f.seats, f.fee_minor, f.refund_state, "
    "f.provider_ref, f.reason, f.call, f.tries, f.retry_at_us, f.version, f.created_at_us, f.changed_at_us, "
    "f.failure, f.refund_lines"
)
# Conditions of a search for events `e`. Each search term fills one slot: the range of words that match it.
# `+ 0` keeps planners from using an index for a condition; the statement itself decides which index is used.
WORD_SLOTS: Final = 8
# Not EXISTS: PostgreSQL would hash all words of the range instead of looking up one event.
_SLOT: Final = """
  AND (:low# = '' OR (SELECT 1 FROM event_words AS x
    WHERE x.event_id = e.event_id AND x.word >= :low# AND x.word < :high# LIMIT 1) IS NOT NULL)"""
EVENT_FILTERS: Final = """
  (:event_state = '' OR e.event_state = :event_state)
  AND e.starts_local_us >= :local_from_us AND e.starts_local_us < :local_before_us
  AND e.sale_starts_at_us >= :sale_from_us AND e.sale_starts_at_us < :sale_before_us
  AND e.sale_ends_at_us > :sale_ends_after_us
  AND (e.starts_at_us + 0 > :after_us OR (e.starts_at_us + 0 = :after_us AND e.event_id > :after_id))
  AND (:currency = '' OR e.currency || '' = :currency)
  AND (:min_price < 0 OR e.max_price_minor >= :min_price)
  AND (:max_price < 0 OR (e.min_price_minor + 0 >= 0 AND e.min_price_minor + 0 <= :max_price))
  AND e.free_seats >= :free"""
WORD_FILTERS: Final = "true" + "".join(_SLOT.replace("#", str(number)) for number in range(1, WORD_SLOTS + 1))
_PARTS: Final = {
    "booking": BOOKING_COLUMNS,
    "payment": PAYMENT_COLUMNS,
    "refund": REFUND_COLUMNS,
    "event_filters": EVENT_FILTERS,
    "word_filters": WORD_FILTERS,
}
_HEADER: Final = re.compile(r"-- name: (\w+)\(([^)]*)\)(.*)")
_EVENT_OF: Final = re.compile(r" :event_of (\w+\.\w+)")
_EVENT_JOIN: Final = r" JOIN booking_events AS d ON d.booking_id = \1"
_OF_PARTITIONS: Final = re.compile(r"\{([^{}]+)\}")
_POSTGRES_TYPES: Final = {"text": "text", "int": "bigint"}

NO_CONFLICT: Final[list[Row]] = []  # compared by identity, because an empty result is something else


class Dialect(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"


class Statement(msgspec.Struct, frozen=True):
    """A named statement: its text with markers, and its row columns and single parameters with their types."""

    name: str
    text: str
    columns: tuple[tuple[str, str], ...]
    params: tuple[tuple[str, str], ...]
    row_by_row: bool = False


@functools.cache
def statements() -> Mapping[str, Statement]:
    """All named statements."""
    ledger = resources.files("frontrow.boxoffice.adapters.ledger")
    files = [file for folder in ledger.iterdir() if folder.is_dir() for file in folder.iterdir()]
    found: dict[str, Statement] = {}
    for file in sorted((file for file in files if file.name.endswith(".sql")), key=lambda file: file.name):
        for block in re.split(r"\n(?=-- name: )", file.read_text("utf-8").strip()):
            statement = _parse(block)
            if statement.name in found:
                raise ValueError(f"{file.name}: statement {statement.name} is defined twice")
            found[statement.name] = statement
    return found


def _parse(block: str) -> Statement:
    head, *lines = block.splitlines()
    match = _HEADER.fullmatch(head)
    if match is None:
        raise ValueError(f"not a statement header: {head!r}")
    name, columns, rest = match.groups()
    return Statement(
        name,
        "\n".join(line for line in lines if not line.startswith("--")).strip(),
        _typed(columns.split(",")) if columns else (),
        _typed(part.lstrip(":") for part in re.findall(r":\w+ \w+", rest)),
        rest.endswith("row by row"),
    )


def _typed(parts: Any) -> tuple[tuple[str, str], ...]:
    pairs = tuple(tuple(part.split()) for part in parts)
    assert all(len(pair) == 2 and pair[1] in _POSTGRES_TYPES for pair in pairs), pairs
    return pairs


@functools.cache
def render(dialect: Dialect, *, partitioned: bool = False) -> Mapping[str, str]:
    """Each statement's SQL in this dialect, for plain tables or for partitioned ones."""
    return {name: _render(one, dialect, partitioned=partitioned) for name, one in statements().items()}


@functools.cache
def sqlite_piece(name: str, count: int) -> str:
    """The SQL of a `row by row` statement for `count` rows as bound values."""
    statement = statements()[name]
    assert statement.row_by_row, name
    assert not statement.params, name
    columns = ", ".join(column for column, _ in statement.columns)
    one = f"({', '.join('?' * len(statement.columns))})"
    values = f"WITH r({columns}) AS (VALUES {', '.join([one] * count)})"
    return f"{values} {_render(statement, Dialect.SQLITE, rows='r')}"


def _render(statement: Statement, dialect: Dialect, rows: str = "", *, partitioned: bool = False) -> str:
    sqlite = dialect is Dialect.SQLITE
    text = _EVENT_OF.sub(_EVENT_JOIN if partitioned else "", statement.text)
    text = _OF_PARTITIONS.sub(r"\1" if partitioned else "", text)
    text = re.sub(r":(booking|payment|refund|event_filters|word_filters)\b", lambda found: _PARTS[found[1]], text)
    text = text.replace(" :skip_locked", "" if sqlite else " FOR UPDATE SKIP LOCKED")
    text = text.replace(" :for_update", "" if sqlite else " FOR UPDATE")
    if sqlite:  # its RETURNING knows the table's columns by their bare names only
        before, returning, after = text.partition("RETURNING ")
        text = before + returning + re.sub(r"\b\w\.", "", after)
    if statement.columns:
        text = text.replace(":rows", rows or (_json_rows(statement) if sqlite else _array_rows(statement)))
    first = 1 if sqlite and statement.columns else len(statement.columns)
    for position, (name, kind) in enumerate(statement.params, start=first + 1):
        marker = f"?{position}" if sqlite else f"${position}::{_POSTGRES_TYPES[kind]}"
        text = re.sub(rf"(?<!:):{name}\b", marker, text)
    return text


def _array_rows(statement: Statement) -> str:
    # As text: asyncpg's own array encoding checks every element for being a container, 0.6 us each.
    types = enumerate((_POSTGRES_TYPES[kind] for _, kind in statement.columns), start=1)
    arrays = ", ".join(f"${n}::text::{kind}[]" for n, kind in types)
    if statement.text.startswith("SELECT") and not statement.params:
        # A read by key. Behind SELECT the planner does not see how many keys there are. It would take a plan made for
        # them for cheaper than the one it keeps, and plan every read anew: twice the CPU, seven times on partitions.
        arrays = ", ".join(f"(SELECT {array})" for array in arrays.split(", "))
    return f"unnest({arrays}) AS r({', '.join(name for name, _ in statement.columns)})"


def _json_rows(statement: Statement) -> str:
    columns = ", ".join(f"value ->> {n} AS {name}" for n, (name, _) in enumerate(statement.columns))
    return f"(SELECT {columns} FROM json_each(?1)) AS r"  # noqa: S608 - names come from our own files


def sqlite_arguments(query: Query) -> list[Any]:
    """The values that `sqlite3` binds for a query."""
    return [msgspec.json.encode(query.rows).decode(), *query.params] if query.rows else list(query.params)


def postgres_arguments(query: Query) -> list[Any]:
    """The values that asyncpg binds for a query: one array literal per column, then the single parameters."""
    return [*map(array_literal, zip(*query.rows, strict=True)), *query.params]


def array_literal(column: Sequence[str] | Sequence[int]) -> str:
    """PostgreSQL's text form of an array of texts or integers, escaped."""
    if type(column[0]) is int:
        return "{" + ",".join(map(str, column)) + "}"
    texts = cast("Sequence[str]", column)
    joined = '","'.join(texts)
    if "\\" in joined or joined.count('"') != 2 * (len(texts) - 1):
        joined = '","'.join(text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return '{"' + joined + '"}'
