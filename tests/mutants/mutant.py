"""One planted bug, and how it is applied to the text of a file."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Final

LIMITER: Final = ("limits/", "core/")  # their files are in another distribution


@dataclasses.dataclass(frozen=True, slots=True)
class Mutant:
    """A bug: in `file`, the text `before` becomes `after`. `tests` are pytest's names of those that must fail then.

    `before` occurs once in the file, so the lines around it may move. `file` is relative to `src/frontrow/`, or to the
    same folder of `packages/limits` or `packages/limits-service`. `guard` names the lock or index that the bug takes
    away.
    """

    name: str
    law: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    guard: str = ""

    def path(self, root: Path) -> Path:
        """Where the file is, in the tree at `root`."""
        package = "limits-service" if self.file.startswith("limits_service/") else "limits"
        is_limiter = package == "limits-service" or self.file.startswith(LIMITER)
        return root / (f"packages/{package}/src/frontrow" if is_limiter else "src/frontrow") / self.file

    def applied(self, text: str) -> str:
        """The text with the bug in it; a `ValueError` if it does not fit exactly once."""
        found = text.count(self.before)
        if found != 1 or self.before == self.after:
            raise ValueError(f"{self.name}: its text occurs {found} times in {self.file}")
        return text.replace(self.before, self.after)

    def stamp_s(self) -> int:
        """A time for the changed file that no other one has, so that Python compiles it anew."""
        return 1_000_000_000 + int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:3])
