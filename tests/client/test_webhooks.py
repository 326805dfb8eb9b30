"""Receivers of webhooks need the client alone: the extra `frontrow[client]`, no server code."""

import subprocess
import sys
import time

from frontrow.client import check_signature
from frontrow.shared.webhook_signature import sign

TRY = """
import sys
from frontrow.client import check_signature
server = ("frontrow.boxoffice", "frontrow.web", "frontrow.waitingroom", "frontrow.app", "frontrow.settings")
print(callable(check_signature), [name for name in sys.modules if name.startswith(server)])
"""


def test_a_receiver_checks_what_the_server_signed_with_todays_time() -> None:
    body = b'{"id":"fct_1"}'
    header = sign(body, "whsec_1", int(time.time()) * 10**6)
    assert check_signature(header, "whsec_1", body)
    assert not check_signature(header, "whsec_2", body)
    assert not check_signature(header, "whsec_1", body + b" ")
    assert not check_signature(sign(body, "whsec_1", (int(time.time()) - 400) * 10**6), "whsec_1", body)
    assert check_signature(sign(body, "whsec_1", (int(time.time()) - 400) * 10**6), "whsec_1", body, tolerance_s=600)
    assert not check_signature(None, "whsec_1", body), "a request without the header"


def test_a_receiver_loads_no_server_code() -> None:
    told = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "True []"
