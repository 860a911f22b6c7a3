"""A program for the hosts of a lab: print which IPv4 flows an interface has carried, as JSON.

python sniff.py INTERFACE

Prints "sniffing" when it begins, and the flows when its input ends. Reads headers only. A flow is
[protocol, one address, other address, lower port], with the number of its packets.
"""

import json
import select
import socket
import struct
import sys
from collections import Counter

PROTOCOLS = {socket.IPPROTO_TCP: "tcp", socket.IPPROTO_UDP: "udp"}
IPV4 = 0x0800
SOL_PACKET, PACKET_STATISTICS = 263, 6
HEADERS_BYTES = 128
BUFFER_BYTES = 64 << 20


def flow(frame):
    header_bytes = (frame[14] & 15) * 4
    kind = frame[14 + 9]
    addresses = sorted(socket.inet_ntoa(frame[begin : begin + 4]) for begin in (26, 30))
    ports = (0, 0)
    if kind in PROTOCOLS:
        ports = struct.unpack_from("!HH", frame, 14 + header_bytes)
    return (PROTOCOLS.get(kind, str(kind)), *addresses, min(ports))


def main(interface):
    seen = Counter()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(IPV4)) as packets:
        packets.setsockopt(socket.SOL_SOCKET, 33, BUFFER_BYTES)  # SO_RCVBUFFORCE
        packets.bind((interface, IPV4))
        print("sniffing", flush=True)
        while sys.stdin not in (ready := select.select([packets, sys.stdin], [], [])[0]) or (
            packets in ready
        ):
            seen[flow(packets.recv(HEADERS_BYTES))] += 1
        statistics = packets.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
    _, dropped = struct.unpack("II", statistics)
    flows = [[*key, count] for key, count in seen.items()]
    print(json.dumps({"dropped": dropped, "flows": flows}))


if __name__ == "__main__":
    main(sys.argv[1])
