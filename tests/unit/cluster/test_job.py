from dragoman.cluster.job import Job, first_ranks
from dragoman.cluster.launch import local_job


def test_a_job_survives_its_way_to_the_agent():
    job = local_job(["train", "ä b'c\n"], 2)
    assert Job.from_line(job.to_line()) == job
    assert "\n" not in job.to_line()


def test_the_ranks_of_a_host_follow_those_of_the_hosts_before_it():
    assert first_ranks([2, 1, 4]) == [0, 2, 3]
    assert first_ranks([3]) == [0]
