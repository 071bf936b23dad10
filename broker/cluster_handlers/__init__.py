"""APIs that the brokers of one cluster ask of each other, one file per API; served by none that stands alone."""
