"""The SM as events: warps, pipes, asynchronous engines, barriers, memory."""
