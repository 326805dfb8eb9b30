"""Every option of a rule × every policy for a store that is down: how many of a crowd are admitted."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from frontrow.limits import Decision, Limiter, Quota, Rule
from frontrow.limits.quota import ALGORITHMS, ON_STORE_DOWN
from frontrow.limits.stores.protocol import StoreRequest, StoreResult
from frontrow.limits.stores.resilient import SharedStore
from frontrow.testing.clock import ManualClock

NOBODY = "redis://127.0.0.1:1/0"  # refuses connections
LIMIT, CROWD = 20, 60


@dataclass(frozen=True)
class Option:
    """A rule with one option, the cost of each request, and how many of the crowd its quota admits."""

    rule: dict[str, Any] = field(default_factory=dict)
    cost: int = 1
    algorithm: str = "fixed_window"
    admits: int = LIMIT


OPTIONS = {
    **{algorithm: Option(algorithm=algorithm) for algorithm in ALGORITHMS},
    "lease 2": Option({"lease": 2}),
    "lease 10": Option({"lease": 10}),
    "lease of the whole quota": Option({"lease": LIMIT}),
    "lease larger than the quota": Option({"lease": 3 * LIMIT}),
    "lease and cost": Option({"lease": 10}, cost=4, admits=LIMIT // 4),
    "lease for everybody": Option({"lease": 10, "per": ()}),
    "lease per user": Option({"lease": 10, "per": ("user",)}),
    "cost": Option(cost=4, admits=LIMIT // 4),
    "for everybody": Option({"per": ()}),
    "per user": Option({"per": ("user",)}),
    "namespace": Option({"namespace": "shop"}),
    "shadow": Option({"shadow": True}, admits=CROWD),
    "tiers": Option({"tiers": {"gold": Quota.parse("7/day")}, "tier_of": lambda _key: "gold"}, admits=7),
}
DOORS = ("blocking", "asyncio")


def decide_crowd(option: Option, policy: str, *, per_rule: bool, door: str) -> list[Decision]:
    """The decisions about a crowd while the store is down. `per_rule`: the rule has the policy, not the limiter."""
    own, of_all = (policy, "open" if policy == "closed" else "closed") if per_rule else (None, policy)
    rule = Rule("a", Quota(LIMIT, 86_400_000_000, option.algorithm), on_store_down=own, **option.rule)
    limiter = Limiter(rule, store=NOBODY, on_store_down=of_all, clock=ManualClock(), deadline_s=5.0)

    async def ask() -> list[Decision]:
        async with limiter:
            return [await limiter.acheck({"user": "42"}, option.cost) for _ in range(CROWD)]

    if door == "asyncio":
        return asyncio.run(ask())
    with limiter:
        return [limiter.check({"user": "42"}, option.cost) for _ in range(CROWD)]


def check_option(option: Option, policy: str, *, per_rule: bool, door: str) -> None:
    decisions = decide_crowd(option, policy, per_rule=per_rule, door=door)
    expected = {"open": CROWD, "closed": 0, "local": option.admits}[policy]
    if option.rule.get("shadow"):
        expected = CROWD  # a shadow rule never refuses
    else:
        assert {decision.source for decision in decisions} == {policy}
    assert sum(decision.allowed for decision in decisions) == expected


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("per_rule", [False, True], ids=["limiter", "rule"])
@pytest.mark.parametrize("policy", ON_STORE_DOWN)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_store_that_is_down_admits_what_the_policy_says(name: str, policy: str, per_rule: bool, door: str) -> None:
    """`lease=10` admitted 2 of 20 per process: each request was charged a whole block."""
    check_option(OPTIONS[name], policy, per_rule=per_rule, door=door)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("lease", [2, 10, 20])
def test_a_leased_rule_beside_others_is_counted_once_per_request(lease: int, door: str) -> None:
    """All rules are decided by the policy together, so a refusal by one burns nothing of the leased one."""
    day = Quota(LIMIT, 86_400_000_000, "fixed_window")
    rules = [Rule("all", day, per=(), lease=lease), Rule("user", Quota.parse("5/day"), per=("user",))]
    limiter = Limiter(rules, store=NOBODY, clock=ManualClock(), deadline_s=5.0)

    async def ask() -> list[bool]:
        async with limiter:
            return [(await limiter.acheck({"user": str(n % 5)})).allowed for n in range(CROWD)]

    if door == "asyncio":
        allowed = asyncio.run(ask())
    else:
        with limiter:
            allowed = [limiter.check({"user": str(n % 5)}).allowed for n in range(CROWD)]
    assert sum(allowed) == LIMIT


@pytest.mark.parametrize("door", DOORS)
def test_canary_a_policy_that_charges_blocks_is_caught(monkeypatch: pytest.MonkeyPatch, door: str) -> None:
    policy = SharedStore.apply_down_policy

    def charge_block(store: SharedStore, request: StoreRequest) -> StoreResult:
        return policy(store, request._replace(cost=10))

    monkeypatch.setattr(SharedStore, "apply_down_policy", charge_block)
    with pytest.raises(AssertionError):
        check_option(OPTIONS["lease 10"], "local", per_rule=False, door=door)
