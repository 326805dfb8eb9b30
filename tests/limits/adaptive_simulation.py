"""A dependency with few workers, simulated in virtual time, behind the real meter, shares and controller.

Callers of three classes arrive at random. What is admitted waits for a worker of the dependency, in order.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from frontrow.limits.adaptive.class_shares import CLASSES, ClassShares
from frontrow.limits.adaptive.controllers import Controller
from frontrow.limits.adaptive.load_meter import Ended, LoadMeter

BACKGROUND, NORMAL, CRITICAL = range(3)
US = 1_000_000


@dataclass
class Story:
    """What happened: each answer, each refusal and each change of the limit, with its second."""

    answers: list[tuple[float, int, float]] = field(default_factory=list)  # (when, class, latency)
    shed: list[tuple[float, int]] = field(default_factory=list)
    limits: list[tuple[float, float]] = field(default_factory=list)

    def per_second(self, from_s: float, to_s: float, rank: int | None = None) -> float:
        found = [1 for when, one, _ in self.answers if from_s <= when < to_s and rank in (None, one)]
        return len(found) / (to_s - from_s)

    def p99_s(self, from_s: float, to_s: float, rank: int) -> float:
        found = sorted(took for when, one, took in self.answers if from_s <= when < to_s and one == rank)
        return found[int(len(found) * 0.99)]

    def limits_of(self, from_s: float, to_s: float) -> list[float]:
        return [limit for when, limit in self.limits if from_s <= when < to_s]


def simulate(
    controller: Controller,
    *,
    workers: int,
    service_s: Callable[[float], float],
    per_second: tuple[float, float, float],
    seconds: float,
    seed: int,
    spread: Literal["uniform", "exponential"] = "uniform",
) -> Story:
    dice, story = random.Random(seed), Story()
    state = controller.start(len(CLASSES))
    meter, shares = LoadMeter(len(CLASSES), 0), ClassShares(tuple(CLASSES.values()), state.limit)
    line: deque[tuple[int, int]] = deque()
    events: list[tuple[int, int, int, int]] = []  # (when, number, class, when it began; -1: it arrives)
    for rank, rate in enumerate(per_second):
        when_s = 0.0
        while rate and when_s < seconds:
            when_s += dice.expovariate(rate)
            events.append((round(when_s * US), len(events), rank, -1))
    heapq.heapify(events)
    number, busy = len(events), 0
    while events:
        now_us, _, rank, began_us = heapq.heappop(events)
        if began_us < 0:
            if not shares.admits(rank, meter.total, 0.0):
                meter.shed()
                story.shed.append((now_us / US, rank))
                continue
            meter.entered(rank, now_us)
            line.append((rank, now_us))
        else:
            busy -= 1
            story.answers.append((now_us / US, rank, (now_us - began_us) / US))
            sample = meter.left(rank, began_us, now_us, Ended.WELL)
            if sample is not None:
                before, state = state, controller.next(state, sample)
                shares.resize(state.limit)
                meter.changed(before.limit, state.limit, sample, now_us)
                story.limits.append((now_us / US, state.limit))
        while busy < workers and line:
            served, began = line.popleft()
            mean_s = service_s(now_us / US)
            took_s = mean_s * dice.uniform(0.5, 1.5) if spread == "uniform" else dice.expovariate(1 / mean_s)
            number, busy = number + 1, busy + 1
            heapq.heappush(events, (now_us + round(took_s * US), number, served, began))
    return story
