"""The rules of the language, with the words of the reference verifier."""
