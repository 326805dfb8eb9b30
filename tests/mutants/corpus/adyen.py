"""Adyen: what it says later decides, in whatever order it says it."""

from tests.mutants.mutant import Mutant

TESTS = "tests/boxoffice/payments/test_adyen.py"
ADAPTER = "boxoffice/adapters/payments"

MUTANTS = (
    Mutant(
        "a refund that was only received counts as paid",
        "a refund is paid when the provider says so",
        f"{ADAPTER}/adyen_notes.py",
        "failed=failed, pending=said is None, failure=",
        "failed=failed, pending=False, failure=",
        (f"{TESTS}::test_refunds_are_paid_when_the_notice_says_so",),
    ),
    Mutant(
        "a refund that failed after its notice counts as paid",
        "a failure that comes later counts, whatever came first",
        f"{ADAPTER}/adyen_notes.py",
        '                if known is None or one.code != "REFUND":',
        "                if known is None:",
        (f"{TESTS}::test_a_refund_that_the_bank_sends_back_is_owed_again",),
    ),
    Mutant(
        "a capture that failed is still money",
        "money is what the provider says it took",
        f"{ADAPTER}/adyen_notes.py",
        "tried.captured, tried.capture_failed = 0, True",
        "tried.capture_failed = True",
        (f"{TESTS}::test_money_that_the_bank_takes_back_after_a_capture_is_told_to_a_person",),
    ),
    Mutant(
        "an amount that is not signed is believed",
        "a notice is believed for what is signed",
        f"{ADAPTER}/adyen_webhooks.py",
        "                str(self.amount.value),\n",
        '                "0",\n',
        (f"{TESTS}::test_forged_notices_are_refused",),
    ),
    Mutant(
        "a notice that nobody signed is believed",
        "a notice is believed for what is signed",
        f"{ADAPTER}/adyen_webhooks.py",
        "    if not hmac.compare_digest(expected, item.additional_data.hmac_signature.encode()):\n",
        "    if item.additional_data.hmac_signature and not hmac.compare_digest(\n"
        "        expected, item.additional_data.hmac_signature.encode()\n    ):\n",
        (f"{TESTS}::test_forged_notices_are_refused",),
    ),
    Mutant(
        "a second payment of the same fan is forgotten",
        "who pays twice gets the second payment back",
        f"{ADAPTER}/adyen.py",
        "for intent in (*one.spare_intents(), one.intent())]",
        "for intent in (one.intent(),)]",
        (f"{TESTS}::test_a_fan_who_pays_twice_gets_the_second_payment_back",),
    ),
    Mutant(
        "the last digits of a card are kept",
        "no digit of a card is kept",
        f"{ADAPTER}/adyen_webhooks.py",
        '        "" if item.is_success and item.event_code not in FAILURES else (item.reason or "")[:200],',
        '        (item.reason or "")[:200],',
        (f"{TESTS}::test_no_digit_of_a_card_is_kept",),
    ),
    Mutant(
        "what an old tab of the form brings pays the dearer basket",
        "a returned form pays only for its own payment",
        f"{ADAPTER}/adyen.py",
        "            own = ref if session in found.sessions else await self._notes.ref_of(NAME, session)\n",
        "            own = ref\n",
        (f"{TESTS}::test_a_form_in_an_old_tab_pays_no_dearer_payment",),
    ),
    Mutant(
        "without the form the button leads nowhere",
        "a fan whose browser cannot show the form pays on Adyen's page",
        f"{ADAPTER}/adyen.py",
        "                if not found.page_url:",
        "                if False:",
        (f"{TESTS}::test_a_fan_whose_browser_cannot_show_the_form_pays_on_adyens_page",),
    ),
    Mutant(
        "the form is money taken at once",
        "money is taken after the sale",
        f"{ADAPTER}/adyen.py",
        '            "additionalData": {"manualCapture": "true"},\n            "metadata": {"booking": made.booking,',
        '            "metadata": {"booking": made.booking,',
        (f"{TESTS}::test_a_payment_for_the_form_is_a_session_of_the_form",),
    ),
)
