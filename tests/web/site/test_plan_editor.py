"""The plan editor: its geometry on Node, and what it saves, read by the server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.seats.formats.plan_document import plan_bytes
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.seats.plan_arrangement import arrange_plan, read_arrangement
from frontrow.web.site.organiser.venues.venue_list import map_of

NODE = Path(__file__).parents[2] / "node"
PLANS = {kind: decode_plan(plan_bytes(generate(kind, 400))) for kind in ("theatre", "arena")}


@pytest.fixture(scope="module")
def editor() -> dict[str, Any]:
    """What the editor's modules did with the plans."""
    asked = json.dumps({"plans": {name: map_of(plan) for name, plan in PLANS.items()}})
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(
        ["node", "arrange.mjs"], cwd=NODE, input=asked, capture_output=True, text=True, timeout=60, check=False, env=env
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def test_moving_turning_bending_and_undoing_keep_what_they_promise(editor: dict[str, Any]) -> None:
    assert editor["checked"] >= 9
    assert not editor["wrong"]


@pytest.mark.parametrize("name", list(PLANS))
def test_what_the_editor_saves_is_what_it_showed(editor: dict[str, Any], name: str) -> None:
    plan, saved = PLANS[name], editor["saved"][name]

    def arranged(placed: Any) -> Plan:
        return decode_plan(plan_bytes(arrange_plan(plan, read_arrangement(json.dumps(placed)))))

    assert plan_bytes(arranged(saved["untouched"])) == plan_bytes(plan), "saved without a change"
    after = arranged(saved["placed"])
    shown = saved["places"]
    seats = {seat_id: seat for seat_id, seat in zip(after.seat_ids, after.seats, strict=True) if "-GA-" not in seat_id}
    assert seats.keys() == shown.keys()
    assert len(seats) > sum("-GA-" not in seat_id for seat_id in plan.seat_ids), "copies are there"
    for seat_id, (x, y) in shown.items():
        assert seats[seat_id].x == pytest.approx(x, abs=0.011), seat_id
        assert seats[seat_id].y == pytest.approx(y, abs=0.011), seat_id
