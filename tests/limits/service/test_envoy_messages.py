"""O7: the messages have the names and numbers of Envoy's public definition."""

from frontrow.limits_service import envoy_messages as messages

# written by the classes of the public definition (xds-protos 1.85.0, grpcio-health-checking 1.85.1)
REQUEST = (
    "0a096d6573736167696e67123e0a190a0c6d6573736167655f7479706512096d61726b6574696e670a170a09746f5f6e756d626572120a"
    "323036313131313131311204082a10031a0208071803"
)
RESPONSE = (
    "0802121e0802120e080510071a087065725f757365721804220808031080cab5ee011a100a0b72657472792d6166746572120134"
    "22060a01781201792a026e6f"
)


def test_a_request_written_by_the_public_definition_is_read():
    request = messages.RateLimitRequest.FromString(bytes.fromhex(REQUEST))
    assert (request.domain, request.hits_addend) == ("messaging", 3)
    [descriptor] = request.descriptors
    assert [(entry.key, entry.value) for entry in descriptor.entries] == [
        ("message_type", "marketing"),
        ("to_number", "2061111111"),
    ]
    assert (descriptor.limit.requests_per_unit, descriptor.limit.unit) == (42, 3)
    assert descriptor.hits_addend.value == 7
    assert request.SerializeToString().hex() == REQUEST


def test_a_response_is_written_as_the_public_definition_writes_it():
    response = messages.RateLimitResponse(overall_code=messages.OVER_LIMIT, raw_body=b"no")
    status = response.statuses.add(code=messages.OVER_LIMIT, limit_remaining=4)
    status.current_limit.name, status.current_limit.requests_per_unit, status.current_limit.unit = "per_user", 5, 7
    status.duration_until_reset.seconds, status.duration_until_reset.nanos = 3, 500_000_000
    response.response_headers_to_add.add(key="retry-after", value="4")
    response.request_headers_to_add.add(key="x", value="y")
    assert response.SerializeToString().hex() == RESPONSE


def test_a_field_that_we_do_not_know_is_no_mistake():
    newer = bytes.fromhex(REQUEST) + bytes.fromhex("fa010161")  # field 31, a text
    assert messages.RateLimitRequest.FromString(newer).domain == "messaging"


def test_health_is_that_of_grpc():
    assert messages.HealthCheckRequest(service="s").SerializeToString().hex() == "0a0173"
    assert messages.HealthCheckResponse(status=messages.NOT_SERVING).SerializeToString().hex() == "0802"
