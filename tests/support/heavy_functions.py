"""Functions that another process can import, for tests of heavy work."""

import os
from pathlib import Path

from frontrow.boxoffice.plans.plan_reader import BadPlan


def work_for_ever(path: str) -> None:
    """Say which process this is, then never end."""
    Path(path).write_text(str(os.getpid()))
    while True:
        pass


def refuse() -> None:
    raise BadPlan("no", param="row")
