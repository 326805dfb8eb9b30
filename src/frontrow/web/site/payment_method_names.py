"""The names of payment methods on pages: brands as they are, plain words in the language of the page."""

from typing import Final

from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS, MethodFamily, PaymentMethod, find_method
from frontrow.web.site.languages import N_

# method -> words; every other one has a brand
NAMES: Final = {
    "card": N_("Card"),
    "sepa_debit": N_("SEPA direct debit"),
    "bank_transfer": N_("Bank transfer"),
}
HINTS: Final = {
    MethodFamily.AT_ONCE: N_("You pay on the page of your bank or app."),
    MethodFamily.SLOW: N_(
        "The money takes a few days. Your seats stay held, and you get your tickets by email when it is there."
    ),
}


def name_of(method: PaymentMethod) -> str:
    """Its name, to be translated."""
    return NAMES.get(method.id, method.name)


def name_of_id(method_id: str) -> str:
    """The name of the method with this id; that of a card while it is not known."""
    method = find_method(ALL_METHODS, method_id)
    return name_of(method) if method is not None else NAMES["card"]
