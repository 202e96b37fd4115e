"""Rules of `convert-tileas-to-llvm`, a file per family of operations.

A distributed tile becomes one vector per thread, in register order of its layout, so elementwise
work stays one operation for the whole fragment.
"""
