"""The reference evaluator: what a program means, computed with NumPy.

Elementwise results are exact where the language defines the bits; otherwise they are computed in
higher precision and rounded once. Undefined behaviour that a run meets is an `EvaluationError`.
"""

from __future__ import annotations

from tile_cudatile.evaluator.errors import EvaluationError
from tile_cudatile.evaluator.machine import Outcome, evaluate

__all__ = ["EvaluationError", "Outcome", "evaluate"]
