"""Caps of SMS that no test reaches."""

from frontrow.boxoffice.messages.sms_limits import SmsLimits
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import NOW


def no_caps() -> SmsLimits:
    return SmsLimits("memory://", ManualClock(NOW), per_number="1000/hour", per_country="1000/hour")
