"""The report of all soaks so far: a page of text and a picture, both from the record alone."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from frontrow.simulation.runs import Tally, replay_command
from tests.simulation.soak import read_record


def write_report(record: Path) -> Path:
    """Write `simulation.md` and `simulation.png` beside the record; where the text is."""
    pieces = read_record(record)
    text, picture = record.with_suffix(".md"), record.with_suffix(".png")
    text.write_text(report_of(pieces, picture.name))
    if pieces:
        draw(pieces, picture)
    return text


def report_of(pieces: Sequence[Tally], picture: str) -> str:
    """What the soaks came to, in Markdown."""
    whole = Tally()
    for piece in pieces:
        whole.join(piece)
    failed = [f"- seed {seed}: {why.splitlines()[0]} (`{replay_command(seed)}`)" for seed, why in whole.failed.items()]
    commits = ", ".join(dict.fromkeys(piece.commit for piece in pieces))
    return "\n".join(
        (
            "# Soak of the simulation",
            "",
            f"{whole.closing_line()}; {whole.steps:,} callbacks in {whole.took_s / 3600:.2f} hours; commits {commits}.",
            "",
            f"![seeds, states and faults over time]({picture})",
            "",
            "## Failed seeds",
            "",
            *(failed or ["None."]),
            "",
            "## Faults injected",
            "",
            *_table(whole.faults),
            "",
            "## States reached",
            "",
            *_table(whole.reached),
            "",
        )
    )


def _table(counts: Counter[str]) -> list[str]:
    return ["| what | times |", "|---|---|", *(f"| {name} | {times:,} |" for name, times in sorted(counts.items()))]


def draw(pieces: Sequence[Tally], target: Path) -> None:
    """Seeds over time, kinds of states over seeds, and faults by kind."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 6))
    hours = list(accumulate(piece.took_s / 3600 for piece in pieces))
    seeds = list(accumulate(piece.seeds for piece in pieces))
    left.plot([0, *hours], [0, *seeds], label="played")
    left.plot([0, *hours], [0, *accumulate(len(piece.failed) for piece in pieces)], label="failed")
    left.set(xlabel="hours", ylabel="seeds", title="Seeds")
    left.legend()
    known: set[str] = set()
    kinds = []
    for piece in pieces:
        known |= piece.reached.keys()
        kinds.append(len(known))
    middle.plot([0, *seeds], [0, *kinds])
    middle.set(xlabel="seeds", title="Kinds of states reached")
    faults = sum((piece.faults for piece in pieces), Counter())
    names = sorted(faults, key=lambda name: faults[name])
    right.barh(names, [faults[name] for name in names])
    right.set(xscale="log", title="Faults injected")
    figure.tight_layout()
    figure.savefig(target, dpi=80)
    plt.close(figure)
