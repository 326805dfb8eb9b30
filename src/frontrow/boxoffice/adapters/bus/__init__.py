"""The bus carries facts from the outbox to their consumers: in process, over Redis Streams or over Kafka."""
