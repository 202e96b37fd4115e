"""One HTML file that shows a compilation: stages, passes, remarks, and what plugins add."""
