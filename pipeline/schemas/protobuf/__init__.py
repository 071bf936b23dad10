"""Protobuf values in a schema registry's wire format, as Arrow columns; `.proto` text read without protoc."""
