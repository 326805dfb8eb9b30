"""`frontrow size` says what a sale needs, from a rehearsal and measured costs (D6)."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from frontrow.cli.size import size
from frontrow.core.errors import InvalidInput
from frontrow.rehearsal.cpu_costs import ARRIVAL, BOOKING, PARTS, POLL, VISIT, price_load, read_costs
from frontrow.rehearsal.sale_plan import SalePlan
from frontrow.rehearsal.simulation import Simulation
from frontrow.rehearsal.sizing import Prices, read_rates, size_sale
from frontrow.waitingroom.model.config import RoomConfig

SMALL = SalePlan(
    room=RoomConfig(capacity=200, window_size=40), seats=400, people=5_000, before_s=60.0, after_s=120.0,
    browse_s=8.0, payment_s=10.0, hold_s=30.0,
)  # fmt: skip


def rehearsed(**changes: object) -> Simulation:
    simulation = Simulation(SMALL.changed(**changes))
    simulation.run()
    return simulation


@pytest.fixture(scope="module")
def small() -> Simulation:
    return rehearsed()


def test_every_request_of_a_person_has_its_measured_cost():
    costs = read_costs()
    for kind in ARRIVAL | POLL | VISIT | BOOKING:
        assert set(costs.work_us[kind]) == set(PARTS)
    assert costs.cpu_us("server", ARRIVAL) > costs.cpu_us("server", POLL) > 0
    assert costs.cpu_us("postgres", BOOKING) > costs.cpu_us("postgres", ARRIVAL)
    assert min(costs.static_bytes, costs.stream_bytes, costs.redis_bytes_per_buyer, *costs.sent_bytes.values()) > 0


def test_the_load_is_the_sum_of_what_people_do():
    costs, none, one = read_costs(), np.zeros(3), np.array([0.0, 2.0, 0.0])
    load = price_load(costs, 1.0, joins=none, polls=none, visits=none, bookings=one)
    for part in PARTS:
        assert load.cpu_s(part) == pytest.approx(2 * costs.cpu_us(part, BOOKING) / 1e6)
        assert load.peak_cores(part) == pytest.approx(2 * costs.cpu_us(part, BOOKING) / 1e6)


def test_d6_the_rates_of_a_size_are_the_people_of_its_rehearsal(small):
    joins, waiting, entered, bookings = read_rates(small)
    history, crowd = small.history, small.crowd
    assert joins.size == waiting.size == entered.size == bookings.size
    assert joins.sum() == np.count_nonzero(crowd.arrives_s <= np.ceil(history.time_s[-1]))
    assert entered.sum() == pytest.approx(history.admitted[-1])
    assert bookings.sum() == pytest.approx(history.bookings)
    before = int(np.ceil(-crowd.arrives_s[0]))  # seconds before the opening
    assert waiting[before - 1] == crowd.drawn, "before the opening everybody who came waits"


def test_d6_more_people_need_more_and_a_cdn_takes_its_share(small):
    costs = read_costs()
    plain, cached = size_sale(small, costs), size_sale(small, costs, cdn=True)
    many = size_sale(rehearsed(people=50_000), costs)
    assert many.server.peak_cores > 5 * plain.server.peak_cores
    assert cached.server.peak_cores < plain.server.peak_cores
    assert cached.redis == plain.redis
    assert cached.peak_mbit_per_s < plain.peak_mbit_per_s
    assert cached.traffic_gb == plain.traffic_gb, "the CDN sends what the servers do not"


def test_money_is_cores_times_hours_and_traffic(small):
    sized = size_sale(small, read_costs(), Prices(core_hour=2.0, traffic_gb=3.0, hours=4.0, currency="CHF"))
    cores = sized.server.cores + sized.redis.cores + sized.postgres.cores
    assert sized.money == pytest.approx(cores * 2.0 * 4.0 + sized.traffic_gb * 3.0)
    with pytest.raises(InvalidInput, match="hours"):
        Prices(hours=-1)


def test_d6_the_command_prints_a_table_or_json(tmp_path):
    app = typer.Typer()
    app.command()(size)
    (tmp_path / "sale.toml").write_text(
        "[room]\ncapacity = 60\nwindow_size = 40\n[rehearsal]\npeople = 3000\nseats = 200\nbefore_s = 60\n"
        "after_s = 120\nbrowse_s = 8\npayment_s = 10\nhold_s = 30\n"
    )
    given = ["-c", str(tmp_path / "sale.toml"), "--people", "2000", "--currency", "CHF"]
    shown = CliRunner().invoke(app, given)
    assert shown.exit_code == 0, shown.output
    assert "PostgreSQL" in shown.output
    assert "CHF" in shown.output
    assert "room.capacity 60" in shown.output, "what the size assumes"
    assert "60 people are in the shop at once" in shown.output
    figures = json.loads(CliRunner().invoke(app, [*given, "--cdn", "--json"]).output)
    assert (figures["people"], figures["seats"], figures["cdn"]) == (2_000, 200, True)
    assert (figures["capacity"], figures["window_size"]) == (60, 40)
    assert figures["server"]["cores"] >= 1
    assert CliRunner().invoke(app, ["--people", "0"]).exit_code == 2
