"""Job files, what runs them, and what is known of a run."""
