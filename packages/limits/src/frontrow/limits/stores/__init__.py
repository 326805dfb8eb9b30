"""Where limits are counted: in this process (`memory`) or shared over Redis (`redis`). Both give the same answers."""
