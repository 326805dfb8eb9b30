"""The documentation site: `make docs` builds it from `docs/`, README and the code (`mkdocs.yml`)."""
