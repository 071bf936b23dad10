"""The cluster as this broker knows it and tells of it, and who and where this broker is."""
