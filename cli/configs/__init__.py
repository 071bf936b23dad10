"""What the commands about configurations do."""
