"""Where schemas come from: a registry over HTTP, or a directory with the same documents."""
