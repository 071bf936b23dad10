"""What the commands about topics do."""
