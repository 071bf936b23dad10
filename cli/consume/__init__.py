"""`kavka consume`: where it reads, and how records are shown."""
