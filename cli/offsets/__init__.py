"""What the commands about partitions' offsets do."""
