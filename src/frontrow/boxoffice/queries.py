"""A named statement with its values, as services pass it to the ledger. The SQL is in `adapters/ledger`."""

from collections.abc import Sequence
from typing import Any

import msgspec

Row = Sequence[Any]


class Query(msgspec.Struct, frozen=True):
    """A statement and its input: rows for its `:rows`, and values for its single parameters in order.

    `fallback` names the statement to run instead, with the same rows, when a unique index objects. When it does not
    object and the statement returns nothing, the result is the list `NO_CONFLICT`.
    """

    name: str
    rows: Sequence[Row] = ()
    params: Sequence[Any] = ()
    fallback: str = ""
