"""Reads what people give as true or false. A text from the environment is neither, so it is an error."""

from frontrow.core.errors import ConfigError


def check_flag(name: str, given: object, where: str = "") -> None:
    """Raise unless `given` is True or False."""
    if given is not True and given is not False:
        at = f"{where}: " if where else ""
        raise ConfigError(f"{at}{name} must be True or False, not {given!r:.80}", param=name)
