"""Programs for the hosts of a lab; they need Python alone.

python talk.py hear ADDRESS PORT FILE    write down the numbers that one connection brings
python talk.py count ADDRESS PORT        connect and count aloud, fifty numbers a second
python talk.py swallow ADDRESS PORT      take all bytes of one connection, then print their
                                         number and the seconds from the first to the last
python talk.py pour ADDRESS PORT [BYTES] connect and send that many, or without end
"""

import socket
import sys
import time
from pathlib import Path


def accepted(address, port):
    with socket.create_server((address, port)) as server:
        return server.accept()[0]


def connected(address, port):
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((address, port), timeout=None)
        except ConnectionRefusedError:  # the other program has not started yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def hear(address, port, file):
    with accepted(address, port) as connection, Path(file).open("wb", buffering=0) as heard:
        while block := connection.recv(4096):
            heard.write(block)


def count(address, port):
    with connected(address, port) as connection:
        number = 0
        while True:
            connection.sendall(b"%d\n" % number)
            number += 1
            time.sleep(0.02)


def swallow(address, port):
    buffer = bytearray(1 << 20)
    with accepted(address, port) as connection:
        total, begun, ended = 0, None, None
        while size := connection.recv_into(buffer):
            ended = time.monotonic()
            if begun is None:
                begun = ended  # the first block is not counted: its way here is not seen
            else:
                total += size
    print(total, ended - begun)


def pour(address, port, size=None):
    block = bytes(1 << 18)
    with connected(address, port) as connection:
        if size is None:
            while True:
                connection.sendall(block)
        connection.sendall(bytes(int(size)))


if __name__ == "__main__":
    what, address, port, *more = sys.argv[1:]
    programs = {"hear": hear, "count": count, "swallow": swallow, "pour": pour}
    programs[what](address, int(port), *more)
