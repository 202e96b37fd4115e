"""A compiler that stays in memory: a supervisor, its workers, and a client that starts fast.

Importing MLIR and the passes takes longer than most compilations. The supervisor does it once and
forks workers from what it has; a client hands its command line, environment, folder and standard
streams to one of them, which does the work as if it were the client.
"""
