"""A worker process without a platform. It has a module of its own, so that the process imports nothing else."""

import os
import signal
from pathlib import Path


def wait_to_be_stopped(path: str) -> None:
    """Tell our pid by a file in the folder `path`, then wait for SIGTERM."""
    Path(path, str(os.getpid())).touch()
    signal.sigwait({signal.SIGTERM})
