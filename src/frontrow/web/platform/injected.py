"""What the framework gives to handlers by name: `platform` and `caller`."""

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from frontrow.web.http.access import Caller
from frontrow.web.platform.platform import Platform

FromPlatform = NamedDependency[SkipValidation[Platform]]
FromCaller = NamedDependency[SkipValidation[Caller]]
