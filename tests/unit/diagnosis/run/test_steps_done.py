from dragoman.diagnosis.run.steps_done import StepsDone


def test_going_back_takes_off_the_steps_since_then_and_what_they_took():
    done = StepsDone()
    done.go_back_to(0)
    for step in (1, 2, 3):
        done.add(step, 2.0)

    assert done.steps == 3
    assert done.go_back_to(1) == (2, 4.0)
    assert done.steps == 1


def test_time_between_steps_belongs_to_the_one_before():
    done = StepsDone(first=0)
    done.add(1, 2.0)
    done.add(1, 0.5)
    done.add(2, 2.0)

    assert done.go_back_to(0) == (2, 4.5)


def test_what_began_before_the_first_recorded_step_counts_from_there():
    done = StepsDone()
    done.go_back_to(100)
    done.add(101, 1.0)

    assert done.steps == 1
    assert done.go_back_to(50) == (51, 1.0)
    assert done.steps == 0
