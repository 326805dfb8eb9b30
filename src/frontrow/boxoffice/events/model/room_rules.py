"""How an event's waiting room is run, as its organiser chose: lanes, depth, human check, one place per person.

The rules are part of the event's document. What the organiser left open (None) is what the server's `[room]` settings
say; publishing writes the values of that moment into the event, so that a later change of the settings changes no
running sale. What can still be changed after that is in `published_changes`.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from frontrow.core.errors import InvalidInput

HUMAN_CHECKS: Final = ("none", "altcha", "turnstile", "hcaptcha", "recaptcha")
MAX_LANES: Final = 2  # the signed now-serving document of an event has room for two
MAX_WEIGHT: Final = 1_000
MAX_DEPTH: Final = 10**9
LANE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,34}")
PRESALE_LANE: Final = "presale"


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of people. Lanes share admissions by weight; the first is for everybody, the second needs a code."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class RoomRules:
    """The organiser's choices; None leaves it to the server's settings. `depth_cap` 0: any number may wait."""

    lanes: tuple[Lane, ...] | None = None
    depth_cap: int | None = None
    human: str | None = None
    one_place_per_person: bool | None = None

    def filled(self, defaults: "RoomRules", *, presale: bool = False) -> "RoomRules":
        """These rules with everything that was left open; a presale has a lane of its own."""
        lanes = self.lanes or defaults.lanes or (Lane("general"),)
        if presale and len(lanes) == 1:
            lanes = (*lanes, Lane(PRESALE_LANE))
        one_place = defaults.one_place_per_person if self.one_place_per_person is None else self.one_place_per_person
        return RoomRules(
            lanes=lanes,
            depth_cap=(defaults.depth_cap or 0) if self.depth_cap is None else self.depth_cap,
            human=self.human or defaults.human or "none",
            one_place_per_person=bool(one_place),
        )

    def edited(self, edit: "RoomRules") -> "RoomRules":
        """These rules with what `edit` names instead."""
        given = {name: value for name in self.__slots__ if (value := getattr(edit, name)) is not None}
        return replace(self, **given)


NO_RULES: Final = RoomRules()  # everything is left to the server's settings


def check_rules(rules: RoomRules, human_checks: tuple[str, ...] = HUMAN_CHECKS) -> None:
    """Refuse rules that no room can have; `human_checks` are those this server has been set up for."""
    lanes = rules.lanes
    if lanes is not None:
        if not 1 <= len(lanes) <= MAX_LANES or len({lane.name for lane in lanes}) != len(lanes):
            raise InvalidInput(f"an event has 1 to {MAX_LANES} lanes with different names", param="lanes")
        for lane in lanes:
            if not LANE_NAME.fullmatch(lane.name) or not 1 <= lane.weight <= MAX_WEIGHT:
                raise InvalidInput(
                    f"a lane is named by 1 to 35 letters, digits, dots or dashes; its weight is 1 to {MAX_WEIGHT}",
                    param="lanes",
                )
    if rules.depth_cap is not None and not 0 <= rules.depth_cap <= MAX_DEPTH:
        raise InvalidInput(f"depth_cap must be 0 to {MAX_DEPTH}", param="depth_cap")
    if rules.human is not None and rules.human not in human_checks:
        raise InvalidInput(
            f"human must be one of {', '.join(human_checks)}; other checks need their keys in the server's settings",
            param="human",
        )
