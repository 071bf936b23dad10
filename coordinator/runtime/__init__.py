"""What runs the state machines: shards, their loading, appends and answers."""
