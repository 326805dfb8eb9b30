"""The benchmarks hold the limiter to the targets that were set, and print those that it misses."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench import limits, limits_docs, limits_memory, limits_serve, measure, route_limits
from bench.measure import Target

ALGORITHMS = limits_memory.ALGORITHMS


def asyncio_figures(of_peer: float) -> dict[str, Any]:
    figures = {f"{each} {who}": us for each in ALGORITHMS for who, us in (("Frontrow", 1.0), ("limits.aio", of_peer))}
    return {"async_us": {**figures, "leaky_bucket aiolimiter": of_peer}}


def test_no_peer_has_a_lower_target_under_asyncio() -> None:
    targets = list(limits._asyncio_targets(asyncio_figures(14.9)))
    assert {target.wanted for target in targets} == {15}
    assert [target for target in targets if "aiolimiter" in target.what]
    assert not any(target.met for target in targets)


def test_three_rules_have_one_target_whatever_the_key_is() -> None:
    hot = {f"{each} Frontrow": 1.0 for each in ALGORITHMS} | {"token_bucket token-bucket": 4.0}
    three = {"Frontrow": 1.0, "limits fixed": 24.9}
    told = list(limits._hot_targets({"hot_us": hot, "three_rules_us": three, "by_parts_us": three}))
    found = {target.what: target for target in told if "rules" in target.what}
    assert len(found) == 2
    assert {(target.wanted, target.met) for target in found.values()} == {(25, False)}


def test_the_service_is_held_to_its_targets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the command prints each with what was reached, and whether that is enough."""
    kinds = ("HTTP hello", "HTTP check", "HTTP batch of 100, per decision", "gRPC hello", "gRPC ShouldRateLimit")
    took = {"p50_ms": 1.0, "p99_ms": 2.5, "max_ms": 29.0}
    told = {
        "costs": {
            f"{kind} ({store})": {"cpu_us": 150.0, "store_us": 60.0, "per_s": 1.0}
            for kind in kinds
            for store in ("memory", "Redis")
        },
        "latency": {f"{kind} ({store})": took for kind in ("check", "batch") for store in ("memory", "Redis")},
        "frozen": took,
        "frozen_hello": took,
        "share_decided_without_store": 0.0,
    }
    targets = limits_serve.show(told)
    wanted = {(target.wanted, target.more_is_better) for target in targets}
    assert wanted == {(10_000, True), (100_000, True), (2.0, False), (30.0, False)}
    monkeypatch.setattr(measure, "OUT", tmp_path)
    assert not measure.report("limits_serve", {}, [*targets, Target("more", 2, 1)])
    printed = capsys.readouterr().out
    assert "9,523.81" in printed
    assert "missed" in printed
    assert "met" in printed


def test_a_missed_target_is_told_with_its_reason_and_a_met_one_without() -> None:
    missed = route_limits.targets({"FastAPI: Frontrow, Depends(limit)": 17.0, "Flask: Frontrow, limited": 14.0})
    told = "\n".join(limits_docs.explained([asdict(target) | {"met": target.met} for target in missed]))
    assert told.startswith("\n- **route limit, FastAPI: Frontrow, Depends(limit).** FastAPI takes about half")
    assert "Flask" not in told
    [unknown] = list(limits_docs.explained([{"what": "a new target", "met": False}]))[1:]
    assert unknown.startswith("- **a new target.** No reason is known.")


def test_every_missed_target_of_the_page_has_a_reason() -> None:
    page = " ".join((limits_docs.DOCS / "limits-performance.md").read_text().split())
    assert "| missed | reached | wanted |" not in page or "- **" in page
    assert limits_docs.UNEXPLAINED not in page
