"""L18, L16: `frontrow limits show | try | check-config` and `frontrow limits demo`."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from frontrow.cli import limits_chart as chart
from frontrow.cli.limits import app

run = CliRunner().invoke


def test_l18_the_curves_tell_the_algorithms_apart():
    curves = {curve.algorithm: curve for curve in chart.run_all("100/minute")}
    assert curves["fixed_window"].worst_minute == 200, "twice the limit around the boundary"
    assert curves["sliding_log"].worst_minute == 100
    assert curves["sliding_counter"].worst_minute <= 130
    assert curves["token_bucket"].accepted == curves["leaky_bucket"].accepted
    assert max(curves["leaky_queue"].accepted) <= 11, "constant rate: 100 a minute are 10 every 6 s"
    assert max(curves["token_bucket"].accepted) >= 100
    offered = len(chart.make_traffic(100))
    assert all(100 < curve.total < offered for curve in curves.values())


def test_l18_show_draws_bars_in_the_terminal_and_numbers_as_json():
    result = run(app, ["show"])
    assert result.exit_code == 0
    assert all(algorithm in result.output for algorithm in chart.ALGORITHMS)
    assert "█" in result.output
    numbers = json.loads(run(app, ["show", "--json"]).stdout)
    assert set(numbers["accepted"]) == set(chart.ALGORITHMS)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_l18_show_writes_the_picture(ending, tmp_path):
    target = tmp_path / f"algorithms.{ending}"
    result = run(app, ["show", "--out", str(target)])
    assert result.exit_code == 0, result.output
    if ending == "png":
        assert target.read_bytes().startswith(b"\x89PNG")
        return
    texts = " ".join(ET.parse(target).getroot().itertext())
    assert all(algorithm in texts for algorithm in chart.ALGORITHMS)
    assert chart.draw_chart(tmp_path / "again.svg").read_bytes() == target.read_bytes(), "the same chart every time"


def test_l16_try_shows_every_decision_in_simulated_time():
    result = run(app, ["try", "3/second", "--algorithm", "sliding_log", "--calls", "6", "--every-ms", "100"])
    assert result.exit_code == 0
    assert (result.output.count("allowed"), result.output.count("refused")) == (3, 3)
    bucket = ["--algorithm", "token_bucket", "--burst", "2", "--calls", "4", "--every-ms", "0"]
    result = run(app, ["try", "10/second", *bucket])
    assert (result.output.count("allowed"), result.output.count("refused")) == (2, 2)


def test_l16_try_takes_a_burst_and_several_quotas_as_people_write_them():
    result = run(app, ["try", "10/s burst 2", "--calls", "4", "--every-ms", "0"])
    assert (result.output.count("allowed"), result.output.count("refused")) == (2, 2)
    result = run(app, ["try", "3/100ms; 5/s", "--calls", "8", "--every-ms", "100"], env={"COLUMNS": "200"})
    assert "3/100ms sliding_counter; 5/1s sliding_counter" in result.output
    assert (result.output.count("allowed"), result.output.count("refused")) == (5, 3)


@pytest.mark.parametrize("words", [["try", "many/second"], ["try", "1/s", "--algorithm", "magic"], ["show", "0/s"]])
def test_l15_wrong_words_exit_2_with_one_sentence(words):
    result = run(app, words)
    assert result.exit_code == 2
    assert "InvalidQuota" in result.output
    assert "Traceback" not in result.output


def test_l16_check_config_shows_the_rules_or_says_what_is_wrong(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text('[limits]\n[[limits.rules]]\nname = "holds"\nquota = "10/minute"\nkey = ["user", "endpoint"]\n')
    result = run(app, ["check-config", str(file)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "holds" in result.output
    file.write_text('[limits]\n[[limits.rules]]\nname = "holds"\nquota = "ten/minute"\n')
    result = run(app, ["check-config", str(file)])
    assert result.exit_code == 2
    assert "limits.rules[0].quota" in result.output.replace("\n", "")


def test_the_demo_ends_by_itself_and_says_who_got_through():
    program = "from frontrow.cli.limits_demo import demo; demo(seconds=0.5)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "rule per-address: 50/1s" in done.stdout
    assert "requests" in done.stdout.splitlines()[-3]
    fans = int(done.stdout.split("Fans got ")[1].split("%")[0])
    bots = int(done.stdout.split("bots ")[-1].split("%")[0])
    assert fans > 90 > 40 > bots
