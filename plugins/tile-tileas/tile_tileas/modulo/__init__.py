"""Software pipelining of loops in registers: a schedule of several stages becomes code."""
