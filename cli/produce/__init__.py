"""`kavka produce`: records out of lines, JSON and files, and their way to the cluster."""
