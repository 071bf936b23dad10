"""Avro values in a schema registry's wire format, as Arrow columns."""
