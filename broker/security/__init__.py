"""Who may do what: principals, resources, operations."""
