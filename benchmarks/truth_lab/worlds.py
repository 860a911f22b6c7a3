"""The worlds: what is wrong in each run, and what its report must say, written down beforehand."""

from collections.abc import Sequence

from truth_lab.world import Cap, Leg, SlowData, SlowDevice, World

NETWORK = ("network-bound",)
STRAGGLER = ("straggler",)
FREE = ("compute-bound",)
LATE_DATA = ("input-bound", "straggler")
"""A host that is late because of its data: either word is right, if the sentence names both."""
# gloo's ring passes from each rank to the one before it, so a host receives from the next one.
ALL = ("node1", "node2", "node3", "node4")
# They are slow only after some steps, and what lasted before must show, too.
ON_PROCESSORS = {"device_s": 0.0, "tokens_per_update": 400, "steps": 60}

QUIET = [
    World("quiet, 2 nodes", "none", FREE, nodes=2, device_s=0.3),
    World("quiet, 3 nodes", "none", FREE, nodes=3, device_s=0.45),
    World("quiet, 4 nodes", "none", FREE, nodes=4, device_s=0.6),
    World("quiet, 1 host with 2 workers", "none", FREE, nodes=1, workers=2, device_s=0.3),
    World("fast enough links, 2 nodes", "none", FREE, device_s=0.4, caps=(Cap(ALL[:2], "1gbit"),)),
]

CAPS = [
    World("all capped, 2 nodes", "network", NETWORK, caps=(Cap(ALL[:2], "60mbit"),)),
    World("all capped, 3 nodes", "network", NETWORK, nodes=3, caps=(Cap(ALL[:3], "100mbit"),)),
    World("all capped, 4 nodes", "network", NETWORK, nodes=4, caps=(Cap(ALL, "120mbit"),)),
    World(
        *("all capped a little, 2 nodes", "network", NETWORK),
        device_s=0.25,
        caps=(Cap(ALL[:2], "150mbit"),),
    ),
    *(
        World(
            *(f"{host} of 3 capped", "network", NETWORK, (host,)),
            nodes=3,
            caps=(Cap((host,), "100mbit"),),
        )
        for host in ALL[:3]
    ),
    World(
        *("node4 of 4 capped", "network", NETWORK, ("node4",)),
        nodes=4,
        caps=(Cap(("node4",), "120mbit"),),
    ),
    World(
        *("node1 of 2 capped", "network", NETWORK, ("node1",)),
        may_name_nobody=True,
        caps=(Cap(("node1",), "100mbit"),),
    ),
    World(
        *("node2 of 3 capped, sending", "network", NETWORK, ("node2",), ("node1",)),
        nodes=3,
        caps=(Cap(("node2",), "100mbit", "send"),),
    ),
    World(
        *("node3 of 3 capped, receiving", "network", NETWORK, ("node3",), ("node1",)),
        nodes=3,
        caps=(Cap(("node3",), "100mbit", "receive"),),
    ),
    World(
        *("node1 of 4 capped, sending", "network", NETWORK, ("node1",), ("node4",)),
        nodes=4,
        caps=(Cap(("node1",), "120mbit", "send"),),
    ),
    World(
        *("node2 of 2 capped, receiving", "network", NETWORK, ("node2",), ("node1",)),
        may_name_nobody=True,
        caps=(Cap(("node2",), "100mbit", "receive"),),
    ),
    World(
        *("two of 4 capped", "network", NETWORK, ("node2", "node3")),
        nodes=4,
        caps=(Cap(("node2", "node3"), "120mbit"),),
    ),
]

CHANGING = [
    World(
        *("all capped since step 30", "network", NETWORK),
        steps=80,
        caps=(Cap(ALL[:2], "60mbit", from_step=30),),
    ),
    World(
        *("node3 of 3 capped since step 40", "network", NETWORK, ("node3",)),
        nodes=3,
        steps=80,
        caps=(Cap(("node3",), "100mbit", from_step=40),),
    ),
    World(
        *("all capped until step 40", "network", NETWORK),
        steps=90,
        caps=(Cap(ALL[:2], "60mbit", until_step=40),),
    ),
    World(
        *("all capped now and then", "network", NETWORK),
        steps=110,
        caps=(Cap(ALL[:2], "40mbit", from_step=8, on_s=3.0, off_s=5.0),),
    ),
    World(
        *("node2 of 3 capped now and then", "network", NETWORK, ("node2",)),
        nodes=3,
        steps=110,
        caps=(Cap(("node2",), "40mbit", from_step=8, on_s=3.0, off_s=5.0),),
    ),
    World(
        *("node2 slower since step 30", "straggling", STRAGGLER, ("node2",)),
        steps=80,
        slow_devices=(SlowDevice(("node2",), 4.0, from_step=30),),
    ),
    World(
        *("node1 of 3 slower until step 40", "straggling", STRAGGLER, ("node1",)),
        nodes=3,
        steps=80,
        slow_devices=(SlowDevice(("node1",), 5.0, until_step=40),),
    ),
]

HOSTS = [
    World(
        *("node2 of 2 slower", "straggling", STRAGGLER, ("node2",)),
        slow_devices=(SlowDevice(("node2",), 2.5),),
    ),
    World(
        *("node3 of 4 slower", "straggling", STRAGGLER, ("node3",)),
        nodes=4,
        device_s=0.3,
        slow_devices=(SlowDevice(("node3",), 3.0),),
    ),
    World(
        *("two of 4 slower", "straggling", STRAGGLER, ("node1", "node4")),
        nodes=4,
        device_s=0.3,
        slow_devices=(SlowDevice(("node1", "node4"), 3.0),),
    ),
    World(
        *("a tenth of a processor for node1", "straggling", STRAGGLER, ("node1",)),
        **ON_PROCESSORS,
        quotas={"node1": 0.1},
    ),
    World(
        *("a tenth of a processor for node3 of 3", "straggling", STRAGGLER, ("node3",)),
        **ON_PROCESSORS,
        nodes=3,
        quotas={"node3": 0.1},
    ),
    World(
        *("other programs on node2", "straggling", STRAGGLER, ("node2",)),
        **ON_PROCESSORS,
        busy_loops={"node2": 12},
    ),
    World(
        *("other programs on both nodes", "none", FREE),
        **ON_PROCESSORS,
        busy_loops={"node1": 4, "node2": 4},
    ),
]

DATA = [
    World(
        *("slow data, 2 nodes", "data", ("input-bound",)),
        steps=35,
        slow_data=(SlowData(ALL[:2], 0.5),),
    ),
    World(
        *("slow data, 3 nodes", "data", ("input-bound",)),
        nodes=3,
        steps=35,
        slow_data=(SlowData(ALL[:3], 0.5),),
    ),
    World(
        *("slow data on node2", "straggling", LATE_DATA, ("node2",)),
        steps=35,
        slow_data=(SlowData(("node2",), 0.5),),
    ),
    World(
        *("slow data on node1 of 3", "straggling", LATE_DATA, ("node1",)),
        nodes=3,
        steps=35,
        slow_data=(SlowData(("node1",), 0.5),),
    ),
]

SEVERAL = [
    World(
        *("all capped, node2 slower", "network", NETWORK),
        allowed=("node2",),
        caps=(Cap(ALL[:2], "60mbit"),),
        slow_devices=(SlowDevice(("node2",), 2.0),),
    ),
    World(
        *("node3 slower, all capped a little", "straggling", STRAGGLER, ("node3",)),
        nodes=3,
        caps=(Cap(ALL[:3], "300mbit"),),
        slow_devices=(SlowDevice(("node3",), 7.0),),
    ),
    World(
        *("node2 of 3 capped, node3 slower", "network", NETWORK, ("node2",)),
        allowed=("node3",),
        nodes=3,
        caps=(Cap(("node2",), "100mbit"),),
        slow_devices=(SlowDevice(("node3",), 2.5),),
    ),
    World(
        *("capped, slow data", "data", ("input-bound",)),
        steps=30,
        caps=(Cap(ALL[:2], "150mbit"),),
        slow_data=(SlowData(ALL[:2], 0.9),),
    ),
]

STOPS = [
    World(
        *("stopped and resumed, capped", "network", NETWORK),
        steps=50,
        caps=(Cap(ALL[:2], "120mbit"),),
        legs=(Leg(2, 20, "SIGTERM"), Leg(2, 50)),
    ),
    World(
        *("a rank killed, quiet", "none", FREE),
        device_s=0.3,
        steps=50,
        legs=(Leg(2, 25, "kill"), Leg(2, 50)),
    ),
    World(
        *("2, then 4, then 3 nodes, capped", "network", NETWORK),
        steps=75,
        caps=(Cap(ALL, "120mbit"),),
        legs=(Leg(2, 25, "SIGTERM"), Leg(4, 50, "SIGTERM"), Leg(3, 75)),
    ),
]

WORLDS: Sequence[World] = [*QUIET, *CAPS, *CHANGING, *HOSTS, *DATA, *SEVERAL, *STOPS]

NOT_HERE = [
    "worlds with latency: this kernel has no netem (tc qdisc add ... netem: unknown qdisc), and "
    "what cannot be put into the kernel would have to be put into the programs that are judged",
]
