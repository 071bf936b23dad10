"""What internal topics and client protocols store: keys, values, and the blobs of the consumer protocol."""
