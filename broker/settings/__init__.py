"""Settings that change while the broker runs: what is stored, what of it is usable, what a change does."""
