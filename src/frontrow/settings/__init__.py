"""The settings of frontrow.toml: the platform's sections, and those of the waiting room."""
