"""What one request asks of the ledger's replicas, and how old its answers were (ADR 0161).

Services never choose between the primary and a replica. The web server says for each request whether it `needs_newest`
(its organiser has just changed something), and the ledger notes the moment that a replica showed.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar


class RequestReads:
    """The reads of one request. `as_of_us`: everything committed until then was seen; 0: all reads saw the newest."""

    __slots__ = ("as_of_us", "needs_newest", "organiser_id")

    def __init__(self, *, needs_newest: bool = False) -> None:
        self.needs_newest = needs_newest
        self.as_of_us = 0
        self.organiser_id = ""  # who will look for what this request changes

    def note(self, as_of_us: int) -> None:
        """Something was read that is as old as this; 0: nothing was."""
        if as_of_us and (not self.as_of_us or as_of_us < self.as_of_us):
            self.as_of_us = as_of_us


request_reads: ContextVar[RequestReads | None] = ContextVar("request_reads", default=None)


@contextlib.contextmanager
def measured_reads() -> Iterator[RequestReads]:
    """Measure the reads inside apart, for what is cached; then they count for the whole request too."""
    whole = request_reads.get()
    part = RequestReads(needs_newest=whole is not None and whole.needs_newest)
    kept = request_reads.set(part)
    try:
        yield part
    finally:
        request_reads.reset(kept)
        note_as_of(part.as_of_us)


def note_as_of(as_of_us: int) -> None:
    """This request shows something as old as this."""
    reads = request_reads.get()
    if reads is not None:
        reads.note(as_of_us)


def needs_newest() -> bool:
    """Whether this request must see everything that was committed before it."""
    reads = request_reads.get()
    return reads is not None and reads.needs_newest
