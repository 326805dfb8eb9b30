"""Roles of staff and what each may do. One table of rights.

A route names a permission. A member's role or an API key's scopes grant it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

PERMISSIONS: Final[Mapping[str, str]] = {
    "events:read": "see events that are not public yet",
    "events:write": "create and change venues, seating, events, tiers and schedules",
    "sales:control": "publish, pause, cancel and steer the waiting room",
    "bookings:read": "see bookings and who made them",
    "refunds:write": "refund outside the fans' own window; sell and give tickets at the box office",
    "messages:write": "write to the people who have tickets",
    "codes:write": "make presale and priority codes",
    "webhooks:write": "send the event's facts elsewhere",
    "figures:read": "see sales figures, live and as files",
    "door:scan": "check tickets at the gate and hand scans in",
    "audit:read": "see who changed what",
    "team:read": "see who is in the team",
    "team:write": "invite, change and remove members of the team",
    "keys:write": "make and revoke API keys",
}


class Role(StrEnum):
    OWNER = "owner"
    MANAGER = "manager"
    BOX_OFFICE = "box_office"
    DOOR = "door"
    READ_ONLY = "read_only"


ROLES: Final[Mapping[Role, frozenset[str]]] = {
    Role.OWNER: frozenset(PERMISSIONS),
    Role.MANAGER: frozenset(PERMISSIONS) - {"team:write", "keys:write"},
    Role.BOX_OFFICE: frozenset(
        {"events:read", "bookings:read", "refunds:write", "codes:write", "figures:read", "door:scan"}
    ),
    Role.DOOR: frozenset({"events:read", "door:scan"}),
    Role.READ_ONLY: frozenset({"events:read", "bookings:read", "figures:read", "audit:read", "team:read"}),
}


def may_manage(actor: Role, target: Role) -> bool:
    """Whether a member with `actor`'s role may give, change or take away `target`'s role."""
    return "team:write" in ROLES[actor] and ROLES[target] <= ROLES[actor]
