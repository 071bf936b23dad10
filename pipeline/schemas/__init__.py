"""Values and keys decoded into columns: JSON with declared fields, Avro and Protobuf from a schema registry."""
