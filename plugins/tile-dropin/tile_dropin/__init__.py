"""In the place of NVIDIA's `tileiras`: its command line, exit codes and messages, over tilec."""
