"""`tilec activate` and `tilec deactivate`."""
