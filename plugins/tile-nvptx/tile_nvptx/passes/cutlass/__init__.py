"""convert-pipeline-to-nvvm: pipes, barriers and tile schedulers of cutlass to instructions."""
