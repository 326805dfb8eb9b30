"""A named statement with its values, as services pass it to the ledger. The SQL is in `adapters/ledger`."""

from collections.abc import Sequence
from typing import Any

import msgspec

Row = Sequence[Any]


class Query(msgspec.Struct, frozen=True):
    """A statement with what goes in: rows for its `:rows`, values for its single parameters in their order.

    `otherwise` names the statement to run instead, with the same rows, when a unique index objects; if it does not, and
    the statement returns nothing, the answer is the list `ALL_WENT_WELL`.
    """

    name: str
    rows: Sequence[Row] = ()
    params: Sequence[Any] = ()
    otherwise: str = ""
