"""`kavka perf`: producing, consuming and going end to end, measured as Kafka's tools measure."""
