"""Best available (B4) in the browser's script: over random plans it proposes what the server would hold."""

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.holds.model.requested_seats import Wish, masks_for
from frontrow.boxoffice.seats.formats.plan_document import to_document
from frontrow.boxoffice.seats.model.best_seats import best_available, find_lonely_seats, layouts
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section, area
from frontrow.web.site.fans.seats import odd_ranks
from tests.boxoffice.plan_samples import an_event

NODE = Path(__file__).parents[2] / "node"
CASES, WISHES, CHOICES = 150, 8, 6
PRICES = {tier.key: tier.price.minor for tier in an_event().tiers}
GAP, STEP, COMPANION, VIEW = (
    int(flag) for flag in (SeatFlag.GAP_AFTER, SeatFlag.STEP_FREE, SeatFlag.COMPANION, SeatFlag.RESTRICTED_VIEW)
)
FLAGS = (0, 0, 0, 0, 0, 0, 0, GAP, STEP, STEP | GAP, COMPANION, VIEW)


@dataclass(frozen=True)
class Case:
    """A plan with its states, the seats a fan holds already, wishes, and choices made by hand."""

    plan: Plan
    states: bytes
    held: frozenset[int]
    wishes: list[Wish]
    choices: list[list[int]]

    @property
    def seen(self) -> bytes:
        """The states for this fan: the own seats count as free."""
        return bytes(0 if at in self.held else state for at, state in enumerate(self.states))

    def document(self) -> dict[str, Any]:
        tiers = {key: {"name": key, "price": price, "cur": "EUR"} for key, price in PRICES.items()}
        wishes = [
            {"count": one.count, "maxPrice": one.max_price_minor, "stepFree": one.step_free, "apart": one.apart_ok}
            for one in self.wishes
        ]
        return {
            "doc": to_document(self.plan, prices=tiers, refs=False),
            "order": self.plan.section_order,
            "ranks": odd_ranks(self.plan),
            "states": list(self.states),
            "held": sorted(self.held),
            "wishes": wishes,
            "choices": self.choices,
        }


def a_section(dice: random.Random, name: str) -> Section:
    if dice.random() < 0.15:
        return area(name, dice.randint(1, 9), tier="standing")
    rows = []
    for number in range(dice.randint(1, 5)):
        tier = dice.choice(("front", "front", "back"))
        seats = tuple(
            Seat(str(at + 1), 10.0 * at, 12.0 * number, tier, dice.choice(FLAGS)) for at in range(dice.randint(1, 14))
        )
        rows.append(Row(f"R{number}", seats, rank=dice.choice((number, dice.randint(0, 3)))))
    return Section(name, tuple(rows), rank=dice.randint(0, 2))


def a_case(dice: random.Random) -> Case:
    plan = Plan("Hall", tuple(a_section(dice, f"S{number}") for number in range(dice.randint(1, 4))), 500.0, 400.0)
    gone = dice.choice((0.0, 0.1, 0.3, 0.6))
    states = bytes(dice.choice((1, 2, 3)) if dice.random() < gone else 0 for _ in range(plan.size))
    held = frozenset(at for at, state in enumerate(states) if state == 1 and dice.random() < 0.3)
    wishes = [
        Wish(
            dice.randint(1, 7),
            max_price_minor=dice.choice((None, None, PRICES["front"], PRICES["back"])),
            step_free=dice.random() < 0.25,
            apart_ok=dice.random() < 0.4,
        )
        for _ in range(WISHES)
    ]
    open_seats = [at for at, state in enumerate(states) if state == 0 or at in held]
    choices = []
    for _ in range(CHOICES if open_seats else 0):
        start = dice.randrange(len(open_seats))
        near = open_seats[start : start + 6]
        choices.append(sorted(dice.sample(near, dice.randint(1, min(3, len(near))))))
    return Case(plan, states, held, wishes, choices)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    dice = random.Random(26)
    return [a_case(dice) for _ in range(CASES)]


@pytest.fixture(scope="module")
def answers(cases: list[Case]) -> list[dict[str, Any]]:
    """What the script did with the cases."""
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    asked = json.dumps([case.document() for case in cases])
    ended = subprocess.run(
        ["node", "best.mjs"], cwd=NODE, input=asked, capture_output=True, text=True, timeout=60, check=False, env=env
    )
    assert ended.returncode == 0, ended.stderr
    answer: list[dict[str, Any]] = json.loads(ended.stdout)
    return answer


def lonely_seats(case: Case, choice: list[int]) -> list[int]:
    """The server's rule, over the whole plan."""
    lonely = []
    for layout in layouts(case.plan):
        end = layout.base + layout.size
        picked = [at - layout.base for at in choice if layout.base <= at < end]
        lonely += [layout.base + at for at in find_lonely_seats(layout, case.seen[layout.base : end], picked)]
    return lonely


def test_b4_the_page_proposes_the_seats_that_the_server_would_hold(
    cases: list[Case], answers: list[dict[str, Any]]
) -> None:
    event, grades = an_event(), set()
    for number, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        plan = case.plan
        for wish, found in zip(case.wishes, answer["found"], strict=True):
            masks = masks_for(plan, layouts(plan), event, wish)
            choice = best_available(layouts(plan), case.seen, masks, wish.count, wish.worst)
            assert found == (list(choice.seats) if choice else []), (number, wish)
            grades.add(choice.grade if choice else None)
    assert len(grades) == 5, "every grade was there, and no seats"


def test_the_page_marks_the_seats_that_the_server_would_refuse_to_leave_alone(
    cases: list[Case], answers: list[dict[str, Any]]
) -> None:
    marked = ways = 0
    for number, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        for choice, said in zip(case.choices, answer["choices"], strict=True):
            assert said["alone"] == lonely_seats(case, choice), (number, choice)
            marked += bool(said["alone"])
            if said["moved"]:
                ways += 1
                kept = [at for at in choice if at not in said["moved"]["from"]]
                after = kept + said["moved"]["to"]
                assert len(set(after)) == len(choice)
                assert not any(case.seen[at] for at in after)
                assert not lonely_seats(case, after), "the way out leaves no seat alone"
    assert marked > 50
    assert ways > 20
