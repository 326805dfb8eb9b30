"""The platform's own keys, sealed."""
