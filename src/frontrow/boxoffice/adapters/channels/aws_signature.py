"""Signs a request for AWS (Signature Version 4). Pure: the time is an argument.

https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html describes the steps.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import msgspec

from frontrow.core.clock import US_PER_S

ALGORITHM: Final = "AWS4-HMAC-SHA256"


class AwsKey(msgspec.Struct, frozen=True):
    """An access key. `session` comes with temporary ones."""

    id: str
    secret: str
    session: str = ""

    def __repr__(self) -> str:
        return f"AwsKey({self.id})"


def sign_request(key: AwsKey, region: str, service: str, url: str, body: bytes, now_us: int) -> dict[str, str]:
    """The headers of a signed POST of JSON to this URL, which has no query."""
    parts = urlsplit(url)
    moment = datetime.fromtimestamp(now_us // US_PER_S, UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"content-type": "application/json", "host": parts.netloc, "x-amz-date": moment}
    if key.session:
        headers["x-amz-security-token"] = key.session
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = "\n".join(("POST", parts.path or "/", "", lines, names, hashlib.sha256(body).hexdigest()))
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signing = f"AWS4{key.secret}".encode()
    for part in (moment[:8], region, service, "aws4_request"):
        signing = hmac.digest(signing, part.encode(), hashlib.sha256)
    signature = hmac.new(signing, text.encode(), hashlib.sha256).hexdigest()
    credential = f"{key.id}/{scope}"
    headers["authorization"] = f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return headers
