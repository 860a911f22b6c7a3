from unit.watch.growing_run import NOW, new_run

from dragoman.watch.analysis import make
from dragoman.watch.content import Watched
from dragoman.watch.live import LiveRun, Surroundings


def test_what_is_watched_can_be_sent_and_read_again(tmp_path):
    run = new_run(tmp_path / "run")
    watched = Watched(
        now=LiveRun().now(NOW, Surroundings(run)), report=make(run).report, changes=[]
    )
    assert Watched.model_validate_json(watched.model_dump_json()) == watched
