"""The shared tree of znodes and the elected controller."""
