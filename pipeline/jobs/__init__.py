"""What the sinks of a job do with its rows: aggregate, join, keep what could not be used."""
