"""Functions that another process can import, for tests of heavy work."""

import os
from pathlib import Path

from frontrow.boxoffice.seats.formats.plan_reader import BadPlan


def work_for_ever(path: str) -> None:
    """Say which process this is, then never end."""
    Path(path).write_text(str(os.getpid()))
    while True:
        pass


def take_memory(megabytes: int) -> int:
    """Fill that much memory, and give it back."""
    return len(b"x" * (megabytes * 1_048_576))


def refuse() -> None:
    raise BadPlan("no", param="row")
