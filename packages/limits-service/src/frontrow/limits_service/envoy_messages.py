"""The messages of Envoy's rate limit protocol v3 and of gRPC's health check, as a table of their fields.

The names and numbers are those of the public definition (envoy/service/ratelimit/v3/rls.proto and what it imports); a
test compares them with text that was written by its classes. The classes are built when the service starts, in a pool
of their own: no generated code that binds us to a version of the compiler, and no clash with another library in the
process that has the same messages (ADR 0197). What the service does not read or write is left out; a client that sends
it is served.
"""

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, wrappers_pb2

from frontrow.core.clock import US_PER_S
from frontrow.limits.quota import DAY_US

RATE_LIMIT_SERVICE: Final = "envoy.service.ratelimit.v3.RateLimitService"
HEALTH_SERVICE: Final = "grpc.health.v1.Health"
UNKNOWN, OK, OVER_LIMIT = 0, 1, 2
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
MAX_UINT32: Final = 2**32 - 1

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "uint32": _Field.TYPE_UINT32,
}
_UNITS = {"UNKNOWN": 0, "SECOND": 1, "MINUTE": 2, "HOUR": 3, "DAY": 4, "MONTH": 5, "YEAR": 6, "WEEK": 7}
_DAYS: Final = {"DAY": 1, "MONTH": 30, "YEAR": 365, "WEEK": 7}
_SECONDS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600}
UNIT_US: Final = {_UNITS[unit]: seconds * US_PER_S for unit, seconds in _SECONDS.items()} | {
    _UNITS[unit]: days * DAY_US for unit, days in _DAYS.items()
}
UNIT_OF: Final = {period_us: unit for unit, period_us in UNIT_US.items()}
# file -> (package, what it imports, enums, messages). A field: (name, number, type); a type ends with [] if repeated,
# and begins with "enum " for an enum.
_RATELIMIT, _RLS = "envoy.extensions.common.ratelimit.v3", "envoy.service.ratelimit.v3"
_FILES: dict[str, tuple[str, list[str], dict[str, dict[str, int]], dict[str, list[tuple[str, int, str]]]]] = {
    "envoy/type/v3/ratelimit_unit.proto": ("envoy.type.v3", [], {"RateLimitUnit": _UNITS}, {}),
    "envoy/config/core/v3/base.proto": (
        "envoy.config.core.v3",
        [],
        {},
        {"HeaderValue": [("key", 1, "string"), ("value", 2, "string")]},
    ),
    "envoy/extensions/common/ratelimit/v3/ratelimit.proto": (
        _RATELIMIT,
        ["envoy/type/v3/ratelimit_unit.proto", "google/protobuf/wrappers.proto"],
        {},
        {
            "RateLimitDescriptor": [
                ("entries", 1, f"{_RATELIMIT}.RateLimitDescriptor.Entry[]"),
                ("limit", 2, f"{_RATELIMIT}.RateLimitDescriptor.RateLimitOverride"),
                ("hits_addend", 3, "google.protobuf.UInt64Value"),
            ],
            "RateLimitDescriptor.Entry": [("key", 1, "string"), ("value", 2, "string")],
            "RateLimitDescriptor.RateLimitOverride": [
                ("requests_per_unit", 1, "uint32"),
                ("unit", 2, "enum envoy.type.v3.RateLimitUnit"),
            ],
        },
    ),
    "envoy/service/ratelimit/v3/rls.proto": (
        _RLS,
        [
            "envoy/config/core/v3/base.proto",
            "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
            "google/protobuf/duration.proto",
        ],
        {
            "RateLimitResponse.Code": {"UNKNOWN": 0, "OK": 1, "OVER_LIMIT": 2},
            "RateLimitResponse.RateLimit.Unit": _UNITS,
        },
        {
            "RateLimitRequest": [
                ("domain", 1, "string"),
                ("descriptors", 2, f"{_RATELIMIT}.RateLimitDescriptor[]"),
                ("hits_addend", 3, "uint32"),
            ],
            "RateLimitResponse": [
                ("overall_code", 1, f"enum {_RLS}.RateLimitResponse.Code"),
                ("statuses", 2, f"{_RLS}.RateLimitResponse.DescriptorStatus[]"),
                ("response_headers_to_add", 3, "envoy.config.core.v3.HeaderValue[]"),
                ("request_headers_to_add", 4, "envoy.config.core.v3.HeaderValue[]"),
                ("raw_body", 5, "bytes"),
            ],
            "RateLimitResponse.RateLimit": [
                ("requests_per_unit", 1, "uint32"),
                ("unit", 2, f"enum {_RLS}.RateLimitResponse.RateLimit.Unit"),
                ("name", 3, "string"),
            ],
            "RateLimitResponse.DescriptorStatus": [
                ("code", 1, f"enum {_RLS}.RateLimitResponse.Code"),
                ("current_limit", 2, f"{_RLS}.RateLimitResponse.RateLimit"),
                ("limit_remaining", 3, "uint32"),
                ("duration_until_reset", 4, "google.protobuf.Duration"),
            ],
        },
    ),
    "grpc/health/v1/health.proto": (
        "grpc.health.v1",
        [],
        {
            "HealthCheckResponse.ServingStatus": {
                "UNKNOWN": 0,
                "SERVING": SERVING,
                "NOT_SERVING": NOT_SERVING,
                "SERVICE_UNKNOWN": SERVICE_UNKNOWN,
            }
        },
        {
            "HealthCheckRequest": [("service", 1, "string")],
            "HealthCheckResponse": [("status", 1, "enum grpc.health.v1.HealthCheckResponse.ServingStatus")],
        },
    ),
}


def _build() -> dict[str, Any]:
    """The class of every message, by its full name."""
    pool = descriptor_pool.DescriptorPool()
    for known in (duration_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    classes: dict[str, Any] = {}
    for file, (package, imports, enums, messages) in _FILES.items():
        proto = descriptor_pb2.FileDescriptorProto(name=file, package=package, syntax="proto3", dependency=imports)
        made: dict[str, Any] = {"": proto}
        for name, fields in messages.items():
            outer, _, own = name.rpartition(".")
            made[name] = made[outer].nested_type.add(name=own) if outer else proto.message_type.add(name=own)
            for field_name, number, kind in fields:
                made[name].field.add(name=field_name, number=number, **_typed(kind))
        for name, values in enums.items():
            outer, _, own = name.rpartition(".")
            enum = made[outer].enum_type.add(name=own)
            for value, number in values.items():
                enum.value.add(name=value, number=number)
        pool.AddSerializedFile(proto.SerializeToString())
        for name in messages:
            full = f"{package}.{name}"
            classes[full] = message_factory.GetMessageClass(pool.FindMessageTypeByName(full))
    return classes


def _typed(kind: str) -> dict[str, Any]:
    """The type of a field as its description has it."""
    plain = kind.removesuffix("[]")
    typed: dict[str, Any] = {"label": _Field.LABEL_REPEATED if kind != plain else _Field.LABEL_OPTIONAL}
    if plain in _SCALARS:
        return typed | {"type": _SCALARS[plain]}
    if plain.startswith("enum "):
        return typed | {"type": _Field.TYPE_ENUM, "type_name": f".{plain.removeprefix('enum ')}"}
    return typed | {"type": _Field.TYPE_MESSAGE, "type_name": f".{plain}"}


CLASSES: Final = _build()
RateLimitRequest: Any = CLASSES[f"{_RLS}.RateLimitRequest"]
RateLimitResponse: Any = CLASSES[f"{_RLS}.RateLimitResponse"]
HealthCheckRequest: Any = CLASSES["grpc.health.v1.HealthCheckRequest"]
HealthCheckResponse: Any = CLASSES["grpc.health.v1.HealthCheckResponse"]
