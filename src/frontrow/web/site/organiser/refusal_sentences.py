"""What a page says of an error of a service, in the words of its language. An error's own message is English and for
programs, so no page shows it: a sentence is found by the error's `reason`, else by its parameter, and what the error
tells about itself (the line, the time) is put into the sentence.
"""

from string import Formatter
from typing import Final

from frontrow.boxoffice.events.model.show_dates import MAX_DATES
from frontrow.boxoffice.pricing.model.sale_options import MAX_OF_ONE_ADD_ON
from frontrow.boxoffice.seats import plan_editing
from frontrow.boxoffice.seats.formats.csv_plans import COLUMNS
from frontrow.boxoffice.seats.model.venues import MAX_SEATS, MAX_TIERS
from frontrow.boxoffice.seats.seat_ranges import MAX_LINES
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.credentials.fan_codes import MAX_CODE_CHARS
from frontrow.web.platform.fan_codes import MAX_IMPORT
from frontrow.web.site.languages import N_, FilledText
from frontrow.web.site.organiser.form_fields import OTHERWISE, PARAMS

PLAN_FILE: Final = N_("This file is no seating plan that can be read. Export it again, then import it.")
PLAN_LINE: Final = N_("Line {line}: this table cannot be read. Check its quotation marks.")
PLAN_LABEL: Final = N_(
    "Line {line}: section, row and seat have letters, digits or dots. A seat occurs once, and the lines of a row are together."  # noqa: E501
)
PLAN_FLAG: Final = N_("Line {line}, column {column}: write yes or no.")
PLAN_POINT: Final = N_("Line {line}: x and y are numbers, on every line or on none.")
# column of a table -> what a wrong line is told
COLUMN_TEXTS: Final = {
    "all": N_("Line {line} does not have as many cells as the first line."),
    "section": PLAN_LABEL,
    "row": PLAN_LABEL,
    "seat": PLAN_LABEL,
    "x": PLAN_POINT,
    "y": PLAN_POINT,
    "capacity": N_(
        "Line {line}: the capacity is a whole number from 1 to {most_seats}. Row and seat of a standing area are empty."
    ),
}
# reason or parameter of an error -> its sentence
TEXTS: Final = {
    "ticket_types": N_(
        "Check the ticket types: each needs a name, and its minimum is not above its maximum. The first one is always on sale, at the price of its tier."  # noqa: E501
    ),
    "add_ons": N_(
        "Check the add-ons: each needs a name of its own and a price of 0 or more, and one booking has at most {most_add_ons} of it."  # noqa: E501
    ),
    "discounts": N_(
        "Check the discount codes: each occurs once, has 2 to 40 letters, digits or dashes, takes off a share or an amount, and ends after it starts."  # noqa: E501
    ),
    "limits": N_("Check the shared limits: each needs a name, a number and something that it counts."),
    "skipped_time": N_("{time} does not exist at the venue: the clocks skip it."),
    "dates": N_("A show gets 1 to {most_dates} dates at once."),
    "weekdays": N_("None of these days of the week is between the first and the last day."),
    "withheld": N_(
        "Line {line} names no seats of this plan. Write a section, a row or seats, such as 101, 101-A or 101-A-4…9."
    ),
    "withheld_lines": N_("These are too many lines. Write at most {most_lines}, and no seat more than once."),
    "rows": N_("A section gets 1 to {most_rows} rows of 1 to {most_in_row} seats."),
    "capacity": N_("A standing area holds 1 to {most_capacity} people."),
    "distance": N_("Move it by at most {most_move}."),
    "section_taken": N_("There is already a section with this name."),
    "last_section": N_("A plan has at least one section."),
    "section": N_("A section’s name has letters, digits or dots."),
    "row": N_("A row’s name has letters, digits or dots."),
    "tiers": N_("A plan has at most {most_tiers} price tiers."),
    "plan_seats": N_("A plan has 1 to {most_seats} seats."),
    "position": N_("That is too far away."),
    "placed": PLAN_FILE,
    "overlap": N_("{one} and {other} overlap."),
    "overlaps": N_("{one} and {other} overlap, and {more} more of these rows."),
    "pretix": N_("This is no pretix seating plan: check {where}."),
    "json": N_("Line {line}, column {column}: this is not valid JSON."),
    "plan_outdated": N_("Someone else changed this plan in the meantime. Open it again."),
    "csv_columns": N_("The first line names the columns: {columns}. Section, row and seat are needed."),
    "csv_unreadable": PLAN_LINE,
    "fan_codes": N_(
        "Line {line}: a code has 4 to {most_code_chars} characters, occurs once and names one of the lanes."
    ),
    "fan_codes_unreadable": N_("This table cannot be read. Check its quotation marks."),
    "fan_codes_count": N_("Import 1 to {most_codes} codes at once."),
}
LIMITS: Final[dict[str, int | str]] = {
    "most_seats": MAX_SEATS,
    "most_tiers": MAX_TIERS,
    "most_add_ons": MAX_OF_ONE_ADD_ON,
    "most_dates": MAX_DATES,
    "most_lines": MAX_LINES,
    "most_rows": plan_editing.MAX_ROWS,
    "most_in_row": plan_editing.MAX_IN_ROW,
    "most_capacity": plan_editing.MAX_CAPACITY,
    "most_move": plan_editing.MAX_MOVE,
    "most_code_chars": MAX_CODE_CHARS,
    "most_codes": MAX_IMPORT,
    "columns": ", ".join(COLUMNS),
}


def sentence_of(error: FrontrowError, otherwise: str = OTHERWISE) -> str:
    """What is wrong, to be translated."""
    names = (error.about.get("reason"), error.param)
    text = next((TEXTS[name] for name in names if name in TEXTS), None)
    if text is None:
        text = PARAMS.get(error.param or "", ("", otherwise))[1]
    return _filled(text, error.about, otherwise)


def sentences_of(error: FrontrowError, otherwise: str = PLAN_FILE) -> list[str]:
    """What is wrong with a file or a plan, line by line, to be translated."""
    lines = [
        _filled(COLUMN_TEXTS.get(column, PLAN_FLAG), {"line": line, "column": column}, otherwise)
        for line, column in error.about.get("lines", ())
    ]
    pairs = [
        _filled(TEXTS["overlaps" if more else "overlap"], {"one": one, "other": other, "more": more}, otherwise)
        for one, other, more in error.about.get("overlaps", ())
    ]
    return lines or pairs or [sentence_of(error, otherwise)]


def _filled(text: str, about: dict[str, int | str], otherwise: str) -> str:
    """The text with the numbers and names that it wants; another one if the error does not tell them."""
    if isinstance(text, FilledText):
        return text
    wanted = {name for _, name, _, _ in Formatter().parse(text) if name}
    known = {name: value for name, value in {**about, **LIMITS}.items() if name in wanted}
    if wanted - known.keys():
        return otherwise
    return FilledText(text, **known) if wanted else text
