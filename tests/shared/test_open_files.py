"""A server raises its own limit of open files, as far as the system lets it."""

import subprocess
import sys

PROGRAM = """
import resource
from frontrow.shared.open_files import SPARE, allow_connections
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4_000))
print(allow_connections(2_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0], SPARE)
print(allow_connections(50_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
print(allow_connections(10), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_the_limit_is_raised_for_the_connections_but_not_above_the_systems_and_never_lowered():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["3000 3000 1000", "4000 4000", "4000 4000"]
    assert "fewer files may be open than connections are allowed" in done.stderr
