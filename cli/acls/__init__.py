"""Who may do what: entries from flags named as in kafka-acls, and how they are shown."""
