"""A cluster on one Linux machine: hosts with real, slow, breakable links between them.

    machine                        namespace ...-switch          namespace ...-node1
    dlab-NAME  10.77.0.254 ======= machine --+
                                             |  bridge
                                   node1 ----+ ================= eth0  10.77.0.1   sshd
                                   node2 ----+ ================= eth0  10.77.0.2   sshd

Each = is a pair of virtual interfaces. A node is a network namespace, and while it runs also a
hostname and a view of the file system, held by its sshd. Both ends of a node's link are limited:
what it sends at its eth0, what it receives at the switch. All that a lab makes carries its name, so
that it is found and removed without any file of its own.
"""

from dragoman.lab.lab import Lab, lab_names, remove_lab

__all__ = ["Lab", "lab_names", "remove_lab"]
