"""Which sorts of callers a route admits, by the words of its access rule alone."""

from frontrow.boxoffice.people.model.roles import ROLES, Role


def may(access: str, caller: str) -> bool:
    """Whether a caller of this sort passes the guard, by the meaning of the words alone."""
    kind, _, permission = access.partition(":")
    role = caller.partition(" of ")[0]
    match kind:
        case "public" | "owner":
            return True
        case "session":
            return caller != "nobody" and not caller.startswith("key")
        case "fan":
            return caller in ("fan", "stranger", "guest")
        case "pass":
            return False  # nobody here shows a pass
        case "staff":
            if caller in ("key with everything", "key of other"):
                return True
            if caller == "key for the gate":
                return permission == "door:scan"
            return role in set(Role) and permission in ROLES[Role(role)]
        case _:
            raise AssertionError(f"{access} is not decided")
