from dragoman.cli.arguments import Hosts


def setup(hosts: Hosts) -> None:
    """Install this version of Dragoman on every host, in parallel.

    Example: dragoman setup --hosts hosts.toml
    """
    from dragoman.cluster.hosts import load_cluster
    from dragoman.cluster.setup import set_up

    set_up(load_cluster(hosts))
