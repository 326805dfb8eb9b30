"""The headers every page carries: a policy that allows our own files and nothing else, and the usual locks.

No inline script or style is allowed anywhere, and scripts cannot turn text into markup (Trusted Types). A page that
needs more (a camera, a payment provider's form) says so, and gets exactly that.
"""

from dataclasses import dataclass, field
from typing import Final

from frontrow.web.settings import PlatformSettings

BASE: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "worker-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
TRUSTED: Final = "require-trusted-types-for 'script'; trusted-types 'none'"


@dataclass(frozen=True)
class Policy:
    """What a page may do beyond the base. `more` adds sources to directives; `trusted_types=False` for foreign code."""

    more: dict[str, str] = field(default_factory=dict)
    trusted_types: bool = True
    camera: bool = False
    payment: bool = False
    framed: bool = False  # our own pages may show it in a frame

    def csp(self) -> str:
        rules = BASE | {"frame-ancestors": "'self'"} if self.framed else dict(BASE)
        for name, sources in self.more.items():
            rules[name] = f"{rules[name]} {sources}" if name in rules else sources
        text = "; ".join(f"{name} {sources}" for name, sources in rules.items())
        return f"{text}; {TRUSTED}" if self.trusted_types else text

    def headers(self, settings: PlatformSettings) -> dict[str, str]:
        """All headers of a page with this policy."""
        may = "(self)"
        camera, payment = may if self.camera else "()", may if self.payment else "()"
        found = {
            "content-security-policy": self.csp(),
            "x-content-type-options": "nosniff",
            "x-frame-options": "SAMEORIGIN" if self.framed else "DENY",
            "referrer-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": f"camera={camera}, microphone=(), geolocation=(), payment={payment}",
        }
        if settings.public_url.startswith("https://"):
            found["strict-transport-security"] = "max-age=31536000; includeSubDomains"
        return found


PLAIN: Final = Policy()
STRIPE: Final = Policy(
    {
        "script-src": "https://js.stripe.com",
        "frame-src": "https://js.stripe.com https://hooks.stripe.com",
        "connect-src": "https://api.stripe.com",
        "img-src": "https://*.stripe.com",
    },
    trusted_types=False,
    payment=True,
)
