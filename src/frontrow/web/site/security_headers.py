"""The headers every page carries: a content security policy that allows only our own files, and the usual hardening.

No inline script or style is allowed anywhere, and scripts cannot turn text into markup (Trusted Types). A page that
needs more (a camera, a payment provider's form) says so, and gets exactly that.
"""

from dataclasses import dataclass, field
from typing import Final

from frontrow.settings.platform import PlatformSettings

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
TRUSTED: Final = "require-trusted-types-for 'script'; trusted-types"


@dataclass(frozen=True)
class PagePolicy:
    """What a page may do beyond the base. `more` adds sources to directives; `trusted_types=False` for foreign code;
    `types` names the page's own Trusted Types policies."""

    more: dict[str, str] = field(default_factory=dict)
    trusted_types: bool = True
    camera: bool = False
    payment: bool = False
    types: str = "'none'"
    framed: bool = False  # our own pages may show it in a frame

    def csp(self) -> str:
        rules = BASE | {"frame-ancestors": "'self'"} if self.framed else dict(BASE)
        for name, sources in self.more.items():
            rules[name] = f"{rules[name]} {sources}" if name in rules else sources
        text = "; ".join(f"{name} {sources}" for name, sources in rules.items())
        return f"{text}; {TRUSTED} {self.types}" if self.trusted_types else text

    def headers(self, settings: PlatformSettings) -> dict[str, str]:
        """All headers of a page with this policy."""
        return self.headers_of(https=settings.public_url.startswith("https://"))

    def headers_of(self, *, https: bool) -> dict[str, str]:
        """All headers of a page, which people reach by https or not."""
        may = "(self)"
        camera = may if self.camera else "()"
        payment = '(self "https://js.stripe.com")' if self.payment else "()"
        found = {
            "content-security-policy": self.csp(),
            "x-content-type-options": "nosniff",
            "x-frame-options": "SAMEORIGIN" if self.framed else "DENY",
            "referrer-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": f"camera={camera}, microphone=(), geolocation=(), payment={payment}",
        }
        if https:
            found["strict-transport-security"] = "max-age=31536000; includeSubDomains"
        return found


PLAIN: Final = PagePolicy()
# What Stripe documents for Stripe.js (docs.stripe.com/security/guide#content-security-policy), without Google's maps.
STRIPE: Final = PagePolicy(
    {
        "script-src": "https://js.stripe.com https://*.js.stripe.com",
        "frame-src": "https://js.stripe.com https://*.js.stripe.com https://hooks.stripe.com",
        "connect-src": "https://api.stripe.com",
        "img-src": "https://*.stripe.com",
    },
    trusted_types=False,
    payment=True,
)


def _adyen(environment: str) -> PagePolicy:
    """The hosts in Adyen's public source for its form: files, pictures and texts from its own network, the fields of a
    card in frames of its API's host. Banks ask on their own pages, so no other frame is needed."""
    api, files = (
        f"https://checkoutshopper-{environment}.adyen.com",
        f"https://checkoutshopper-{environment}.cdn.adyen.com",
    )
    return PagePolicy(
        {
            "script-src": files,
            "style-src": files,
            "img-src": f"{api} {files}",
            "connect-src": f"{api} {files} https://checkoutanalytics-{environment}.adyen.com",
            "frame-src": api,
            "form-action": api,
        },
        trusted_types=False,
    )


ADYEN_TEST: Final = _adyen("test")
ADYEN_LIVE: Final = _adyen("live")
# Camera images are decoded by WebAssembly in a worker; the page's one Trusted Types policy covers both workers.
GATE: Final = PagePolicy({"script-src": "'wasm-unsafe-eval'"}, camera=True, types="frontrow-door")
# For workers: a worker has the policy of its own file, not of the page.
WORKER_CSP: Final = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"
