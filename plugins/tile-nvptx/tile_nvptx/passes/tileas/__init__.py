"""`convert-tileas-to-llvm`: from distributed tiles to what one thread does.

`rules/` has the rules, a file per family of operations; `thread/` what they share: types, builders,
the kernel's state, shared memory; `device/` the texts of functions that are called.

A distributed tile becomes one vector per thread, in register order of its layout, so elementwise
work stays one operation for the whole fragment.
"""
