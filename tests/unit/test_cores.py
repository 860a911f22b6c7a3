import os

import psutil

from dragoman.cores import allowed_cores, usable_cores


def test_only_cores_count_that_a_process_may_use():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert allowed_cores() == usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert allowed_cores() == len(allowed)


def test_twins_of_one_physical_core_count_once(monkeypatch):
    monkeypatch.setattr("dragoman.cores.allowed_cores", lambda: 8)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 8 if logical else 4)
    assert usable_cores() == 4
    monkeypatch.setattr("dragoman.cores.allowed_cores", lambda: 2)
    assert usable_cores() == 2


def test_where_physical_cores_are_not_known_all_count(monkeypatch):
    monkeypatch.setattr("dragoman.cores.allowed_cores", lambda: 8)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: None)
    assert usable_cores() == 8
