"""The GPU kit: one folder that checks compiler, simulator and model on a machine with a GPU.

`build` makes it, `runner` is what runs there, `report` reads what came back.
"""
