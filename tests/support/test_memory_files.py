"""Where the files of a test session are."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.memory_files import PREFIX

ENDED = "999999999"  # no process has this id
PROGRAM = """
import json, os, sys, tempfile
from pathlib import Path
from tests.support import memory_files
memory_files.ROOM_BYTES = int(sys.argv[2])
environ, before = json.loads(sys.argv[3]), tempfile.gettempdir()
memory_files.keep_files_in_memory(environ, Path(sys.argv[1]))
now = tempfile.gettempdir()
print(environ.get("TMPDIR"), now == before, oct(os.stat(now).st_mode & 0o777), os.getpid())
"""


def run(memory: Path, room: int, **environ: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, str(memory), str(room), json.dumps(environ)]
    root = Path(__file__).parents[2]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=root).stdout.split()


def test_files_are_in_memory_until_the_process_ends_and_those_of_a_killed_one_are_removed(tmp_path: Path) -> None:
    left, mine = tmp_path / f"{PREFIX}{ENDED}", tmp_path / f"{PREFIX}{os.getpid()}"
    left.mkdir()
    mine.mkdir()
    told, same, mode, pid = run(tmp_path, 1)
    assert (told, same, mode) == (str(tmp_path / f"{PREFIX}{pid}"), "False", "0o755")
    assert list(tmp_path.iterdir()) == [mine], "its own is gone at its end; that of a living process stays"


def test_files_stay_on_disk_without_room_or_where_somebody_said_so(tmp_path: Path) -> None:
    assert run(tmp_path, 1 << 60)[:2] == ["None", "True"]
    assert run(tmp_path, 1, TMPDIR=tempfile.gettempdir())[:2] == [tempfile.gettempdir(), "True"]
    assert list(tmp_path.iterdir()) == []
