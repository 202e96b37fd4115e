"""SASS: what ptxas made of PTX, with its control codes and its lines."""
