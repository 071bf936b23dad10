"""One module per API: its request, its response and their structs."""
