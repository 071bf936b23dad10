"""What the commands about transactions and their producers do."""
