"""Live updates by server-sent events: positions, seat maps, sales figures."""
