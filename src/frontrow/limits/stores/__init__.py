"""Where limits are counted: in this process (`memory`) or shared over Redis (`redis`). Both answer the same."""
