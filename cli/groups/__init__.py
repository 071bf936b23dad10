"""What the commands about groups do."""
