"""The assembly form of programs, as `tileirdisasm` prints it."""
