"""What the console refuses."""

from frontrow.core.errors import Forbidden, NotFound, Refused, Unauthorised


class OwnerNeeded(Unauthorised):
    """Nobody is signed in, or the session has ended."""

    code = "sign_in_needed"


class WrongPassword(Unauthorised):
    """No such owner, or not their password: nobody is told which."""

    code = "wrong_credentials"


class OwnerLinkSpent(NotFound):
    """This one-time link was used, replaced, or has expired."""

    code = "link_spent"


class RightMissing(Forbidden):
    """The role, or the API key, does not include this."""

    code = "not_allowed"


class ConsoleConflict(Refused):
    """Somebody else has changed the same thing since it was read."""

    code = "changed_by_another"


class NameTaken(Refused):
    """There is, or was, a room of this name. Places and passes name their room, so a name is used once."""

    code = "name_taken"


class NewerVersion(Refused):
    """A newer server has written this. An older one serves the room as it is and changes nothing of it."""

    code = "newer_version"
