"""What a form says of an email address that is missing or mistyped."""

from typing import Final

from frontrow.boxoffice.people.model.email_addresses import is_email
from frontrow.web.site.languages import N_

NO_EMAIL: Final = N_("Please enter an email address.")
BAD_EMAIL: Final = N_("This does not look like an email address.")


def email_problem(typed: str) -> str:
    """What is wrong with the address, to be translated; empty if nothing is."""
    if is_email(typed):
        return ""
    return BAD_EMAIL if typed.strip() else NO_EMAIL
