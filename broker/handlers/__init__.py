"""One module an API: its handler, registered by `@handles`."""
