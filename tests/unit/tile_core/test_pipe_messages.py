"""Messages through a pipe."""

from __future__ import annotations

import os
import threading

import pytest

from tile_core.pipe_messages import read_message, write_message


def test_messages_arrive_whole_and_in_order() -> None:
    reader, writer = os.pipe()
    sent = [{"a": (1, None)}, b"x" * 300_000, "last"]  # the second fills a pipe several times

    def send() -> None:
        for message in sent:
            write_message(writer, message)

    thread = threading.Thread(target=send)
    thread.start()
    assert [read_message(reader) for _ in sent] == sent
    thread.join()
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("begun", [b"", b"\x05\0\0", b"\x05" + bytes(7) + b"abc"])
def test_the_other_side_goes(begun: bytes) -> None:
    reader, writer = os.pipe()
    os.write(writer, begun)
    os.close(writer)
    with pytest.raises(EOFError, match="closed the pipe"):
        read_message(reader)
    os.close(reader)
