"""What a page of the console says of an error, in the words of its language. An error's own message is for programs."""

from typing import Final

from frontrow.core.errors import FrontrowError
from frontrow.web.site.languages import N_

OTHERWISE: Final = N_("That did not work. Please try again.")
NOT_FOUND: Final = N_("There is no such room, person or key here.")
# code of an error -> its sentence
BY_CODE: Final = {
    "wrong_credentials": N_("Wrong email address or password."),
    "too_many_tries": N_("Too many tries. Please wait a few minutes."),
    "link_spent": N_("This link was used, replaced or has expired. Ask for a new one."),
    "not_allowed": N_("Your role does not allow this"),
    "changed_by_another": N_("Somebody else has changed this meanwhile. Load the page again."),
    "name_taken": N_("There is, or was, a room of this name. Passes name their room, so choose another name."),
    "newer_version": N_("A newer server has set this up. Update this server to change it."),
    "cross_site": N_("The page you came from may be out of date. Go back, reload it and try again."),
    "not_found": NOT_FOUND,
    "refused": N_("People have places in this room already, so it cannot go back to a draw."),
    "unavailable": N_("A part of this service does not answer. Nothing was changed; try again in a moment."),
    "room_recovering": N_("A part of this service does not answer. Nothing was changed; try again in a moment."),
}
# parameter of an error -> its sentence
BY_PARAM: Final = {
    "email": N_("Enter an email address such as ada@example.org."),
    "password": N_("Use at least 12 characters that are hard to guess. A sentence is fine."),
    "name": N_("Enter a name."),
    "event": N_("A room is named by 1 to 35 letters, digits, dots, dashes or underscores."),
    "shop_url": N_("The address of the shop begins with https://."),
    "message": N_("The message is too long."),
    "prequeue_at": N_("The pre-queue begins before the room opens."),
    "opens_at": N_("A pre-queue needs a time at which the room opens."),
    "closes_at": N_("The room closes after it has opened."),
    "zone": N_("Choose a time zone such as Europe/Vienna."),
    "hosts": N_("A host is written like shop.example.org or *.example.org."),
    "paths": N_("A path is written like /cart or /sale/*."),
    "open_paths": N_("A path is written like /cart or /sale/*."),
    "methods": N_("Choose methods from the list."),
    "networks": N_(
        "An address is written like 192.0.2.7, a network like 192.0.2.0/24. IPv6 networks are a /64 or larger."
    ),
    "crawlers": N_("A crawler needs a part of its user agent and its networks: Examplebot 192.0.2.0/24"),
    "rules": N_("These are too many lines."),
    "colour": N_("A colour is # and six digits or letters, like #a3123f."),
    "languages": N_("Choose at least one language."),
    "title": N_("The title is too long."),
    "text": N_("The text is too long."),
    "picture": N_("This file is no picture that can be shown. Use PNG, JPEG or WebP."),
    "logo": N_("This file is no picture that can be shown. Use PNG, JPEG or WebP."),
    "scopes": N_("Choose what the key may do."),
    "max_stay_s": N_("A visit cannot be shorter than its pass."),
    "owner": N_("The last owner cannot be removed."),
}
OUT_OF_RANGE: Final = N_("A number is out of range.")


def sentence_of(error: FrontrowError | None) -> str:
    """The sentence for this error; it is translated where it is shown."""
    if error is None:
        return OTHERWISE
    if error.code == "invalid_input":
        return BY_PARAM.get(error.param or "", OUT_OF_RANGE if error.param else OTHERWISE)
    return BY_CODE.get(error.code, OTHERWISE)
