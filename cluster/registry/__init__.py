"""The shared tree of znodes: one interface, several keepers."""
