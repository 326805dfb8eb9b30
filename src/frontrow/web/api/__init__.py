"""The HTTP API v1: one module per topic, each with its `ROUTES`; `frontrow.web.app` collects them.

A handler takes `platform` and `caller` by dependency injection, takes and returns msgspec Structs, and declares
`operation_id` and `opt={"access": …}`. Annotate the injected ones as `platform: FromPlatform, caller: FromCaller`.
"""

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from frontrow.web.api.access import Caller
from frontrow.web.platform.platform import Platform

FromPlatform = NamedDependency[SkipValidation[Platform]]
FromCaller = NamedDependency[SkipValidation[Caller]]
