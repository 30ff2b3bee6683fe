"""A scripted API server and a driver for wire_client; Python's standard library alone."""
