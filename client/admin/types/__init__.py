"""What administrators name and are told: immutable, and of no thread."""
