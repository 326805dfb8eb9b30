"""What a room's owner has set up, beside the settings that the room itself carries: where the shop is, the schedule,
the rules, the page. `settings` are those that were last set here, for a store and an audit that are new."""

from typing import Final
from urllib.parse import urlsplit

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.console.model.page_design import PageDesign
from frontrow.waitingroom.console.model.protection import ProtectionRules
from frontrow.waitingroom.console.model.schedules import Schedule, ScheduleStep
from frontrow.waitingroom.console.model.versions import read_document, write_document

VERSION: Final = 1
MAX_URL_CHARS: Final = 500
# What an owner sets by name: the settings of `RoomConfig` that make sense while people wait.
SETTINGS: Final = (
    "capacity",
    "window_size",
    "interval_us",
    "rate_per_s",
    "burst",
    "min_slide",
    "active_windows",
    "grace_us",
    "catch_up_us",
    "pass_ttl_s",
    "max_stay_s",
    "idle_s",
    "leave_s",
    "depth_cap",
)


class StepDone(msgspec.Struct, frozen=True):
    """A step of the schedule that a server has taken on: until when it is trying, and that it is done."""

    step: ScheduleStep
    at_us: int
    trying_until_us: int = 0
    done: bool = False
    why_not: str = ""


class RoomPlan(msgspec.Struct, frozen=True):
    """One room of the console."""

    name: str
    created_at_us: int
    shop_url: str = ""
    zone: str = "UTC"  # the time zone in which its owner reads and writes times
    schedule: Schedule = Schedule()
    steps: tuple[StepDone, ...] = ()
    rules: ProtectionRules = ProtectionRules()
    design: PageDesign = PageDesign()
    settings: dict[str, int] = {}
    deleted_at_us: int = 0

    def is_done(self, step: ScheduleStep, at_us: int) -> bool:
        return any(one.done for one in self.steps if (one.step, one.at_us) == (step, at_us))

    def trying_until_us(self, step: ScheduleStep, at_us: int) -> int:
        return max((one.trying_until_us for one in self.steps if (one.step, one.at_us) == (step, at_us)), default=0)

    def with_step(self, done: StepDone) -> "RoomPlan":
        """The plan with this step's state; only steps of the schedule are kept."""
        wanted = {(step, at_us) for at_us, step in self.schedule.steps()}
        others = tuple(
            one
            for one in self.steps
            if (one.step, one.at_us) != (done.step, done.at_us) and (one.step, one.at_us) in wanted
        )
        return msgspec.structs.replace(self, steps=(*others, done))

    def to_text(self) -> str:
        return write_document(self, VERSION)


def plan_of(text: str) -> RoomPlan:
    """The plan of a stored document. Raises NewerVersion."""
    return read_document(RoomPlan, text, VERSION)


def checked_shop_url(text: str) -> str:
    """The shop's address: http or https with a host, or nothing. Raises InvalidInput."""
    url = text.strip()
    if not url:
        return ""
    parts = urlsplit(url) if url.isprintable() and len(url) <= MAX_URL_CHARS and " " not in url else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InvalidInput("the shop's address begins with https:// and a host, or is empty", param="shop_url")
    return url if parts.path else f"{url}/"
