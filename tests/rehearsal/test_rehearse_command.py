"""`frontrow rehearse` says what a sale will be like, in the terminal, as JSON and as one page (D6)."""

import json
import re
import subprocess
import sys
from datetime import datetime
from html.parser import HTMLParser

import pytest

from frontrow.cli.rehearse import read_sale_plan
from frontrow.core.errors import ConfigError
from frontrow.rehearsal.cpu_costs import read_costs
from frontrow.rehearsal.figures import read_figures, say_duration
from frontrow.rehearsal.sale_plan import Outage, SalePlan
from frontrow.rehearsal.simulation import Simulation
from frontrow.waitingroom.model.config import RoomConfig

SMALL = SalePlan(
    room=RoomConfig(capacity=60, window_size=40),
    seats=200, people=3_000, before_s=60.0, after_s=120.0, patience_s=300.0, browse_s=8.0, payment_s=10.0, hold_s=30.0,
)  # fmt: skip


def rehearse(plan: SalePlan):
    simulation = Simulation(plan)
    simulation.run()
    return read_figures(simulation, read_costs())


def run(*args: str, cwd: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "frontrow.cli.main", "rehearse", *args]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)


def test_d6_a_sale_from_the_configured_room_to_the_report(tmp_path):
    (tmp_path / "frontrow.toml").write_text(
        "[room]\ncapacity = 60\nwindow_size = 40\n[rehearsal]\npeople = 3000\nseats = 200\nbefore_s = 60\n"
        "after_s = 120\nbrowse_s = 8\npayment_s = 10\nhold_s = 30\nbots = 0.1\n"
        "provider_outage = {start_s = 10, length_s = 5}\n"
    )
    done = run("-c", "frontrow.toml", "--html", "report.html", "--json", "figures.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sold out after" in done.stdout
    assert "bottleneck" in done.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert (figures["seats"], figures["seats_sold"]) == (200, 200)
    assert figures["people"] == 3_000
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 8
    assert not re.search(r"(src|href)=", page), "one file, nothing from elsewhere"
    HTMLParser().feed(page)
    assert sum(figures["outcomes"].values()) == 3_000
    assert (figures["settings"]["seed"], figures["settings"]["room"]["capacity"]) == (1, 60)
    made_at = datetime.fromisoformat(figures["made_at"])
    assert f"Made {made_at:%Y-%m-%d %H:%M} UTC with seed 1" in page, "a report says when and how it was made"
    for name, value in (("hold_s", "30"), ("capacity", "60"), ("interval_s", "1"), ("seed", "1")):
        assert f"<tr><td>{name}</td><td>{value}</td></tr>" in page
    assert "<tr><td>provider_outage</td><td>from 10 s for 5 s</td></tr>" in page
    assert "<tr><td>everybody</td><td>3,000</td><td>100.0%</td></tr>" in page
    assert re.search(r"everybody +│ +3,000", done.stdout)


@pytest.mark.parametrize(
    ("text", "word"),
    [("[rehearsal]\nguests = 3\n", "guests"), ("[rehearsal]\npeople = 0\n", "people"), ("[room]\nfoo = 1\n", "foo")],
)
def test_d6_a_wrong_setting_is_named(tmp_path, text, word):
    (tmp_path / "frontrow.toml").write_text(text)
    done = run("-c", "frontrow.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_d6_variables_of_the_room_count_and_others_are_refused(tmp_path, monkeypatch):
    """Without a file they were ignored in silence."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRONTROW_ROOM_CAPACITY", "77")
    assert read_sale_plan(None, room={}, sale={}).room.capacity == 77
    monkeypatch.setenv("FRONTROW_ROOM_CAPACTIY", "77")
    with pytest.raises(ConfigError, match="did you mean FRONTROW_ROOM_CAPACITY"):
        read_sale_plan(None, room={}, sale={})
    monkeypatch.setenv("FRONTROW_REHEARSAL_PEOPLE", "5")
    with pytest.raises(ConfigError, match="FRONTROW_REHEARSAL_PEOPLE is not a setting"):
        read_sale_plan(None, room={}, sale={})


@pytest.mark.parametrize(
    ("room", "bottleneck", "setting"),
    [
        (RoomConfig(capacity=20, window_size=100), "capacity", "room.capacity"),
        (RoomConfig(capacity=5_000, window_size=2), "window", "room.window_size"),
        (RoomConfig(capacity=5_000, window_size=100, rate_per_s=1, burst=1), "rate", "room.rate_per_s"),
    ],
)
def test_d6_the_advice_names_the_setting_that_limits_the_sale(room, bottleneck, setting):
    figures = rehearse(SMALL.changed(room=room))
    assert figures.bottleneck == bottleneck
    assert setting in figures.advice[0]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bots": 0.4, "bots_stopped": 0.5},
        {"people": 100},  # not sold out
        {"arrivals": "steady"},
        {"server_outage": Outage(20, 30), "provider_outage": Outage(5, 60)},
        {"room": RoomConfig(capacity=60, window_size=40, active_windows=1), "reaction_s": 30.0},  # places expire
        {"room": RoomConfig(capacity=20, window_size=100), "patience_s": 20.0},
    ],
    ids=["plain", "bots", "few", "steady", "outages", "late", "impatient"],
)
def test_d6_everybody_is_accounted_for_once(changes):
    """640,000 of 1,000,000 were missing in the summary: those still in the line when the sale had ended."""
    plan = SMALL.changed(**changes)
    simulation = Simulation(plan)
    simulation.run()
    figures = read_figures(simulation, read_costs())
    outcomes, history = figures.outcomes, simulation.history
    assert outcomes.everybody == plan.people == figures.people
    assert outcomes.waiting == history.waiting[-1], "the same as the curve shows"
    inside = outcomes.found_nothing + outcomes.looked_and_left + outcomes.choosing
    assert inside + outcomes.bought + outcomes.payments_failed + outcomes.holds_expired == history.visits
    assert outcomes.bought == figures.bookings
    assert outcomes.stopped == round(plan.people * plan.bots) - round(plan.people * plan.bots * (1 - plan.bots_stopped))
    if plan.room.active_windows:
        assert outcomes.places_expired > 0


def test_d6_a_faster_shop_sells_out_sooner_and_waits_are_shorter():
    slow = rehearse(SMALL.changed(room=RoomConfig(capacity=20, window_size=100)))
    fast = rehearse(SMALL.changed(room=RoomConfig(capacity=80, window_size=100)))
    assert fast.all_taken_s < slow.all_taken_s
    assert fast.wait_median_s < slow.wait_median_s
    assert fast.peak_cores >= slow.peak_cores


def test_d6_coming_early_to_the_prequeue_does_not_help_and_bots_are_told():
    figures = rehearse(SMALL.changed(people=60_000, seats=5_000, room=RoomConfig(capacity=2_000, window_size=500)))
    assert figures.draw_spread < 0.15, "each tenth of the pre-queue by arrival is admitted alike"
    bots = rehearse(SMALL.changed(bots=0.4, arrivals="bots"))
    assert bots.bots_of_seats > 0.3
    assert any("Bots get" in line for line in bots.advice)


def test_d6_an_outage_longer_than_a_hold_is_told():
    figures = rehearse(SMALL.changed(provider_outage=Outage(5, 60)))
    assert any("provider is away" in line for line in figures.advice)
    assert figures.holds_expired > 0


def test_durations_read_like_people_say_them():
    assert [say_duration(s) for s in (5, 65, 3_661)] == ["5 s", "1 min 5 s", "1 h 1 min"]
