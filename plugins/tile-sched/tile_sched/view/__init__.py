"""Schedules as tables, charts, pages and traces."""
