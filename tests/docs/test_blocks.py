"""Blocks of the docs that are not Python: settings are accepted, JSON can be read, drawings say what the code does."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from frontrow.boxoffice.payments.model.payments import NEXT, PaymentState
from frontrow.core.settings_loader import load
from frontrow.limits.config import LimitsSettings
from frontrow.limits_service.service_config import load_service_config
from frontrow.settings.platform import read_settings
from frontrow.settings.room import RoomSettings
from tests.docs.blocks import ROOT, blocks

TOML = [(f"{page.relative_to(ROOT)}:{line}", code) for page, line, _, code in blocks("toml")]
LIMITS_SERVICE = "docs/limits-service.md"  # files of `frontrow-limits serve`
ROOM_ALONE = "docs/waitingroom"  # the settings of `frontrow room serve`
DEMO = {"FRONTROW_SERVER_DEMO": "1"}


@pytest.mark.parametrize(("where", "code"), TOML, ids=[where for where, _ in TOML])
def test_a_block_of_settings_is_accepted(where: str, code: str, tmp_path: Path) -> None:
    tables = tomllib.loads(code)
    if where.startswith(LIMITS_SERVICE):
        (tmp_path / "limits.toml").write_text(code)
        assert load_service_config(tmp_path / "limits.toml", env={})
    elif "limits" in tables:  # the rules and tiers are run by the Python block beside it
        given = {name: value for name, value in tables["limits"].items() if not isinstance(value, dict | list)}
        assert load(LimitsSettings, "limits", tables={"limits": given}, env={})
    elif where.startswith(ROOM_ALONE):
        assert load(RoomSettings, "room", tables=tables, env={})
    else:
        (tmp_path / "frontrow.toml").write_text(code)
        assert read_settings(tmp_path / "frontrow.toml", {} if "stripe" in tables else DEMO)


def test_every_json_block_can_be_read() -> None:
    found = [code for _, _, _, code in blocks("json")]
    assert found
    for code in found:
        json.loads(code)


def test_the_drawing_of_a_payment_shows_moves_that_exist() -> None:
    [drawing] = [code for page, _, _, code in blocks("mermaid") if page.name == "payments.md"]
    arrows = re.findall(r"^ +(\w+) --> (\w+)", drawing, re.MULTILINE)
    assert {state for arrow in arrows for state in arrow} == set(PaymentState)
    assert [arrow for arrow in arrows if arrow[1] not in NEXT[PaymentState(arrow[0])]] == []
