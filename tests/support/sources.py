"""The files of the repository that git knows or would take."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def sources(*folders: str) -> list[Path]:
    """Every file in these folders, or in all."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
