"""The machine: groups of threads, memory, scheduling, launches."""
