"""What the commands about records that lie in partitions do."""
