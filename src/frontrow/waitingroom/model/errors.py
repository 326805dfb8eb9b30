"""What can go wrong in the waiting room, as one branch of the tree in `core.errors`.

NotFound       RoomUnknown
Unauthorised   PlaceInvalid, PassInvalid, PassExpired, ProofInvalid, PersonNeeded (one place per person),
               HandOverInvalid (forged, expired, or of another browser)
Forbidden      PlaceForeign (another event), PassForeign, CodeInvalid, CodeNeeded (presale)
Refused        NotYourTurn, PlaceExpired, AlreadyClaimed, PassEnded, CodeUsed, CodeOver (the presale has ended),
               RoomClosed, StayTooLong, HandOverUsed
Overloaded     RoomFull (capacity used up this instant), RoomOverflow (too many waiting)
Unavailable    RoomHeld (queue-all is on), RoomRecovering (the store lost its memory and is being rebuilt)
"""

from frontrow.core import errors


class RoomUnknown(errors.NotFound):
    code = "room_unknown"


class PlaceInvalid(errors.Unauthorised):
    code = "place_invalid"


class PlaceForeign(errors.Forbidden):
    code = "place_foreign"


class PlaceExpired(errors.Refused):
    code = "place_expired"
    http_status = 410


class NotYourTurn(errors.Refused):
    code = "not_your_turn"


class AlreadyClaimed(errors.Refused):
    code = "already_claimed"


class ProofInvalid(errors.Unauthorised):
    code = "proof_invalid"


class PassInvalid(errors.Unauthorised):
    code = "pass_invalid"


class PassExpired(errors.Unauthorised):
    code = "pass_expired"


class PassForeign(errors.Forbidden):
    code = "pass_foreign"


class PassEnded(errors.Refused):
    code = "pass_ended"


class StayTooLong(errors.Refused):
    code = "stay_too_long"


class HandOverInvalid(errors.Unauthorised):
    code = "hand_over_invalid"


class HandOverUsed(errors.Refused):
    code = "hand_over_used"


class CodeInvalid(errors.Forbidden):
    code = "code_invalid"


class CodeUsed(errors.Refused):
    code = "code_used"


class CodeNeeded(errors.Forbidden):
    """A presale is on: only people with a code may join until `general_sale_at_s`."""

    code = "code_needed"


class CodeOver(errors.Refused):
    """The presale has ended; nobody needs a code any more."""

    code = "code_over"


class PersonNeeded(errors.Unauthorised):
    """In this line everybody has one place, so everybody must sign in."""

    code = "person_needed"


class RoomClosed(errors.Refused):
    code = "room_closed"


class RoomFull(errors.Overloaded):
    code = "room_full"


class RoomOverflow(errors.Overloaded):
    code = "room_overflow"


class RoomHeld(errors.Unavailable):
    code = "room_held"


class RoomRecovering(errors.Unavailable):
    code = "room_recovering"
