"""`frontrow …` on a machine whose clock is off by SHIFT_S seconds."""

import os
import time

from frontrow.cli.main import main as run_frontrow


def main() -> None:
    shift_ns = int(os.environ["SHIFT_S"]) * 1_000_000_000
    read_s, read_ns = time.time, time.time_ns
    time.time = lambda: read_s() + shift_ns / 1e9
    time.time_ns = lambda: read_ns() + shift_ns
    run_frontrow()
