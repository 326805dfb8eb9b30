"""No provider's words outside its adapter: what the rest of the box office and the web compare are our own names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import frontrow.boxoffice
import frontrow.web
from frontrow.boxoffice.adapters.payments.adyen_notes import TYPES
from frontrow.boxoffice.adapters.payments.adyen_webhooks import KINDS
from frontrow.boxoffice.adapters.payments.examinations import STRIPE_EVENTS
from frontrow.boxoffice.adapters.payments.stripe_objects import OUR_IDS, STATES
from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.model.provider_intents import IntentState, NoticeKind

OURS = {*(one.id for one in ALL_METHODS), *IntentState, *PaymentState, *NoticeKind}
ALL = {*STRIPE_EVENTS, *STATES, *OUR_IDS, *KINDS, *TYPES.values(), "display_bank_transfer_instructions"}
# "canceled" or "scheme" may be anybody's word
THEIRS = {word for word in ALL - OURS if not (word.isalpha() and word.islower())}
ROOTS = [Path(part.__path__[0]) for part in (frontrow.boxoffice, frontrow.web)]
ADAPTERS = ROOTS[0] / "adapters" / "payments"


def texts(source: str) -> Iterator[str]:
    """Every text constant of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_words_are_known_where_they_belong() -> None:
    used = {text for path in ADAPTERS.glob("*.py") for text in texts(path.read_text("utf-8"))}
    assert used >= THEIRS


def test_no_word_of_a_provider_stands_outside_its_adapter() -> None:
    found = [
        (path.relative_to(root).as_posix(), text)
        for root in ROOTS
        for path in root.rglob("*.py")
        if ADAPTERS not in path.parents
        for text in texts(path.read_text("utf-8"))
        if text in THEIRS
    ]
    assert found == []
