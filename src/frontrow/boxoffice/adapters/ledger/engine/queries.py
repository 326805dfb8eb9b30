"""A named statement with its values. The SQL is in the domains' folders of the ledger, and nothing above the ledger
names it."""

from collections.abc import Sequence
from typing import Any

from frontrow.boxoffice.facts.ports import PlannedWrite

Row = Sequence[Any]


class Query(PlannedWrite, frozen=True):
    """A statement and its input: rows for its `:rows`, and values for its single parameters in order.

    `fallback` names the statement to run instead, with the same rows, when a unique index objects. When it does not
    object and the statement returns nothing, the result is the list `NO_CONFLICT`.
    """

    name: str
    rows: Sequence[Row] = ()
    params: Sequence[Any] = ()
    fallback: str = ""
