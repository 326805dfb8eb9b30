"""L18, L16: `frontrow limits show | try | check-config` and `frontrow limits demo`."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from frontrow.cli.limits import app
from frontrow.limits import chart as picture

run = CliRunner().invoke


def test_l18_the_curves_tell_the_algorithms_apart():
    made = {curve.algorithm: curve for curve in picture.curves("100/minute")}
    assert made["fixed_window"].worst_minute == 200, "twice the limit around the boundary"
    assert made["sliding_log"].worst_minute == 100
    assert made["sliding_counter"].worst_minute <= 130
    assert made["token_bucket"].accepted == made["leaky_bucket"].accepted
    assert max(made["leaky_queue"].accepted) <= 11, "constant rate: 100 a minute are 10 every 6 s"
    assert max(made["token_bucket"].accepted) >= 100
    offered = len(picture.traffic(100))
    assert all(100 < curve.total < offered for curve in made.values())


def test_l18_show_draws_bars_in_the_terminal_and_numbers_as_json():
    told = run(app, ["show"])
    assert told.exit_code == 0
    assert all(algorithm in told.output for algorithm in picture.ALGORITHMS)
    assert "█" in told.output
    numbers = json.loads(run(app, ["show", "--json"]).stdout)
    assert set(numbers["accepted"]) == set(picture.ALGORITHMS)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_l18_show_writes_the_picture(ending, tmp_path):
    target = tmp_path / f"algorithms.{ending}"
    told = run(app, ["show", "--out", str(target)])
    assert told.exit_code == 0, told.output
    if ending == "png":
        assert target.read_bytes().startswith(b"\x89PNG")
        return
    texts = " ".join(ET.parse(target).getroot().itertext())
    assert all(algorithm in texts for algorithm in picture.ALGORITHMS)
    assert picture.draw(tmp_path / "again.svg").read_bytes() == target.read_bytes(), "the same picture every time"


def test_l16_try_shows_every_decision_in_simulated_time():
    told = run(app, ["try", "3/second", "--algorithm", "sliding_log", "--calls", "6", "--every-ms", "100"])
    assert told.exit_code == 0
    assert (told.output.count("allowed"), told.output.count("refused")) == (3, 3)
    bucket = ["--algorithm", "token_bucket", "--burst", "2", "--calls", "4", "--every-ms", "0"]
    told = run(app, ["try", "10/second", *bucket])
    assert (told.output.count("allowed"), told.output.count("refused")) == (2, 2)


@pytest.mark.parametrize("words", [["try", "many/second"], ["try", "1/s", "--algorithm", "magic"], ["show", "0/s"]])
def test_l15_wrong_words_exit_2_with_one_sentence(words):
    told = run(app, words)
    assert told.exit_code == 2
    assert "InvalidQuota" in told.output
    assert "Traceback" not in told.output


def test_l16_check_config_shows_the_rules_or_says_what_is_wrong(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text('[limits]\n[[limits.rules]]\nname = "holds"\nquota = "10/minute"\nkey = ["user", "endpoint"]\n')
    told = run(app, ["check-config", str(file)], env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.output
    assert "holds" in told.output
    file.write_text('[limits]\n[[limits.rules]]\nname = "holds"\nquota = "ten/minute"\n')
    told = run(app, ["check-config", str(file)])
    assert told.exit_code == 2
    assert "limits.rules[0].quota" in told.output.replace("\n", "")


def test_the_demo_ends_by_itself_and_says_who_got_through():
    program = "from frontrow.limits.demo import demo; demo(seconds=0.5)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "rule per-address: 50/1s" in done.stdout
    assert "requests" in done.stdout.splitlines()[-3]
    fans = int(done.stdout.split("Fans got ")[1].split("%")[0])
    bots = int(done.stdout.split("bots ")[-1].split("%")[0])
    assert fans > 90 > 40 > bots
