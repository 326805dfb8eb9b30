"""Checks the subject of a commit message: `area: imperative`, at most 72 characters, one change.

Called by the hook `commit-subject` with the file that git wrote the message to. The rules are about form. Whether a
verb is imperative is guessed from its ending, with a list of the verbs that only look otherwise.
"""

import re
import sys
from pathlib import Path
from typing import Final

LONGEST: Final = 72
_FORM: Final = re.compile(r"(?P<area>[a-z0-9][a-z0-9 ,._/-]*): (?P<verb>[A-Za-z-]+)(?P<rest>.*)")
_MADE_BY_GIT: Final = ("Merge ", "Revert ", "fixup! ", "squash! ")
_NO_VERB: Final = re.compile(
    "a|an|the|this|that|these|those|it|its|one|all|both|every|each|no|some|many|more|most|who|what|when|where|how|in|on|at"
    "|of|by|for|from|with|without|and|or|not|new|old"
)
_LOOKS_OTHERWISE: Final = re.compile(  # imperatives that end like another form
    "pass|address|process|press|express|compress|suppress|guess|miss|discuss|assess|access|bless|focus"
    "|need|feed|heed|speed|seed|shed|embed|exceed|succeed|proceed|bring|string|ring|sing|cling"
)


def faults(message: str) -> list[str]:
    """What is wrong with the first line of a commit message, each with what would be right."""
    subject = message.splitlines()[0].strip() if message.strip() else ""
    if subject.startswith(_MADE_BY_GIT):
        return []
    found = []
    if len(subject) > LONGEST:
        found.append(f"it has {len(subject)} characters; say it in {LONGEST} and put the rest in the body")
    match = _FORM.fullmatch(subject)
    if match is None:
        return [*found, "it is not `area: imperative`, for example `checkout: keep seats while the provider is away`"]
    verb = match["verb"].lower()
    other_form = verb.endswith(("s", "ed", "ing")) and not _LOOKS_OTHERWISE.fullmatch(verb)
    if other_form or _NO_VERB.fullmatch(verb):
        found.append(
            f"{match['verb']!r} is no imperative; begin with what the commit does: add, keep, refuse, remove …"
        )
    if ";" in subject:
        found.append("a semicolon joins two changes; make a commit of each")
    if subject.endswith("."):
        found.append("it ends with a full stop; leave that out")
    return found


def main(path: str) -> int:
    """The exit code of the hook for the message in `path`."""
    found = faults("\n".join(line for line in Path(path).read_text().splitlines() if not line.startswith("#")))
    for fault in found:
        print(f"commit subject: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
