"""What clients prove themselves with: users' SCRAM credentials, and delegation tokens."""
