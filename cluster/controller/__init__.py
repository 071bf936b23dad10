"""The elected controller: who leads what, and telling the brokers so."""
