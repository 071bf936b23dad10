"""How classic groups share partitions out: range, round robin, sticky, cooperative sticky, and what users bring."""
