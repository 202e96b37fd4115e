"""What a schedule asks of buffers: depths of rings, lifetimes, barriers, bytes, pipes."""
