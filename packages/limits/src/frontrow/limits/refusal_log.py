"""One log line per refused request, at most a few per second and rule.

A line has a keyed hash in place of the client's key: lines of one client belong together, but a line does not reveal
the person.
"""

import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import blake2b

from frontrow.core.forks import fork_safe_lock

log = logging.getLogger("frontrow.limits")
HASH_BYTES = 8


class RefusalLog:
    """Writes one structured line per refusal, at most `per_second` per second and rule. It counts the rest."""

    def __init__(
        self,
        per_second: int = 5,
        *,
        hash_key: bytes | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
        max_rules: int = 10_000,
    ) -> None:
        self._per_second = per_second
        self._hash_key = hash_key or secrets.token_bytes(16)
        self._monotonic_s = monotonic_s
        self._max_rules = max_rules
        self._lock = fork_safe_lock()
        self._seen: dict[str, tuple[int, int]] = {}  # rule -> (second, lines written or suppressed in it)

    def write(self, rule: str, key: str | Mapping[str, str], **about: object) -> None:
        """Log a refusal, unless this second already has enough of them."""
        second = int(self._monotonic_s())
        with self._lock:
            then, count = self._seen.get(rule, (second, 0))
            suppressed = max(0, count - self._per_second) if then != second else 0
            count = 1 if then != second else count + 1
            if rule in self._seen or len(self._seen) < self._max_rules:
                self._seen[rule] = (second, count)
        if count > self._per_second:
            return
        fact: dict[str, object] = {"fact": "RequestRefused", "rule": rule, "key_hash": self.hash(key), **about}
        if suppressed:
            fact["suppressed"] = suppressed
        log.warning("%s", json.dumps(fact), extra={"frontrow": fact})

    def hash(self, key: str | Mapping[str, str]) -> str:
        """A keyed hash of a client's key. The same client has the same hash within this process (or per `hash_key`)."""
        if not isinstance(key, str):
            key = "\0".join(f"{part}={value}" for part, value in sorted(key.items()))
        return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES, key=self._hash_key).hexdigest()
