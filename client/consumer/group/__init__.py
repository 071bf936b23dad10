"""The consumer as a member of its group: assignors, memberships, commits."""
