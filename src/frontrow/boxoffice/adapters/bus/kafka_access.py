"""How a Kafka cluster is reached: TLS, SASL, topic and partitions. Pure values; the password shows nowhere.

`KafkaAccess` is checked when settings are read, so a combination that cannot work stops the start with one sentence
that names the setting.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from frontrow.core.errors import ConfigError

TOPIC: Final = "frontrow.facts"
PROTOCOLS: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
EXAMPLE: Final = "kafka://broker1:9092,broker2:9092/facts"


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """Who we are to the brokers, and by what we know them."""

    security_protocol: str = "plaintext"
    sasl_mechanism: str = "SCRAM-SHA-512"
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    partitions: int = 0

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("ssl")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("sasl")

    def check(self) -> None:
        """Refuse what cannot work together. Messages name the settings of `[bus]`."""
        protocol = self.security_protocol
        if self.uses_sasl and not (self.user and self.password):
            missing = "bus.password" if self.user else "bus.user"
            raise _error(f"{missing} is not set; bus.security_protocol {protocol} needs a user and a password", missing)
        if not self.uses_sasl and (self.user or self.password):
            given = "bus.user" if self.user else "bus.password"
            raise _error(f"{given} is set, and bus.security_protocol is {protocol}: set it to sasl_ssl", given)
        files = {"bus.ca_file": self.ca_file, "bus.cert_file": self.cert_file, "bus.key_file": self.key_file}
        for name, path in files.items():
            if path and not self.uses_tls:
                raise _error(f"{name} is set, and bus.security_protocol is {protocol}: set it to ssl or sasl_ssl", name)
            if path and not Path(path).is_file():
                raise _error(f"{name}: there is no file {path}", name)
        if bool(self.cert_file) != bool(self.key_file):
            missing = "bus.key_file" if self.cert_file else "bus.cert_file"
            raise _error(f"{missing} is not set; a client's certificate and its key go together", missing)

    def options(self) -> dict[str, Any]:
        """The options of librdkafka."""
        found: dict[str, Any] = {"security.protocol": self.security_protocol}
        if self.uses_sasl:
            found |= {
                "sasl.mechanism": self.sasl_mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        files = {
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.cert_file,
            "ssl.key.location": self.key_file,
        }
        return found | {name: path for name, path in files.items() if path}


def read_kafka_url(url: str) -> tuple[str, str]:
    """The brokers and the topic of a `kafka://` URL."""
    servers, _, topic = url.removeprefix("kafka:").removeprefix("//").partition("/")
    if "@" in servers:
        raise _error("bus.url must not contain a password; set bus.user and bus.password", "bus.url")
    if not servers or any(not one.strip() for one in servers.split(",")):
        raise _error(f"bus.url must name the brokers, like {EXAMPLE}", "bus.url")
    return servers, topic or TOPIC


def _error(message: str, param: str) -> ConfigError:
    return ConfigError(message, param=param)
