"""Placing operations at one initiation interval: state, gates, costs, arms, driver."""
