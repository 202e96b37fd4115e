"""What is made ready before schedules are: the six stages of tileas-prepare-for-scheduling.

Source: Tile IR specification, "TileAS scheduling glue passes"; the order of the stages is part of
the contract.
"""
