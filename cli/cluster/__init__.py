"""What the commands about a cluster and its brokers do."""
