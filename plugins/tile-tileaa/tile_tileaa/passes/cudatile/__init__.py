"""Rules of `convert-cudatile-to-tileaa`, a file per family of operations."""
