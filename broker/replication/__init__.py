"""Following: copying partitions from the brokers that lead them."""
