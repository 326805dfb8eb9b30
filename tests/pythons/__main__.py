"""`python -m tests.pythons [quick]`: README's two commands as a stranger on Python 3.12, 3.13 and 3.14.

3.13 and 3.14 run in minimal Debians (root needed), 3.12 where it is installed. `quick` is what `.ci/run` does: on 3.13
the demo and the tests without browser, journeys and faults, on 3.14 the demo. `--only 3.13` runs one of them.
"""

import argparse
import sys
from pathlib import Path

from tests.pythons.runs import ALL, QUICK, run_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=__doc__)
    parser.add_argument("quick", nargs="?", choices=["quick"])
    parser.add_argument("--only", help="one Python, such as 3.13")
    given = parser.parse_args()
    worlds = [world for world in (QUICK if given.quick else ALL) if given.only in (None, world.python)]
    return run_all(worlds, Path(__file__).parents[2], quick=bool(given.quick))


if __name__ == "__main__":
    sys.exit(main())
