"""Loading, resolving and running pipelines."""
