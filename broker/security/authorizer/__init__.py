"""Kafka's AclAuthorizer: ACLs in the tree, decided by on a snapshot that is swapped whole."""
