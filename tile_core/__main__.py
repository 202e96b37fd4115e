"""`python -m tile_core` is `tilec`."""

from tile_core.cli.main import main

if __name__ == "__main__":
    main()
