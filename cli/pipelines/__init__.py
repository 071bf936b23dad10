"""What the commands about pipelines do."""
