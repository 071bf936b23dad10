"""What is different: between topics, brokers, clusters."""
