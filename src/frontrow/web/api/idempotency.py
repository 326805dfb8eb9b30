"""`Idempotency-Key` on every POST: the same key and body get the same answer, another body 409.

Keys belong to a caller and a route; answers are kept in the ledger. Hold, join and pay have handling of their own
(`opt={"idempotency": "own"}`), because their answers follow from what they made.
"""

from frontrow.core.errors import InvalidInput, Refused

MAX_KEY_CHARS = 128


class KeyReused(Refused):
    """This key came before with another request."""

    code = "idempotency_mismatch"


class StillRunning(Refused):
    """The first request with this key has not been answered yet."""

    code = "idempotency_running"


def check_key(key: str) -> str:
    """`key` if it can be an Idempotency-Key."""
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
        raise InvalidInput(f"Idempotency-Key has 1 to {MAX_KEY_CHARS} printable characters", param="Idempotency-Key")
    return key
