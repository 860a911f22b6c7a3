from unit.diagnosis.speed_run import new_run, read
from unit.report.fake_run import evaluated, started, step

from dragoman.diagnosis.run.hosts import host_of
from dragoman.telemetry.events import AttemptEnded


def test_lines_with_a_number_for_a_text_are_passed_over(tmp_path):
    run = new_run(tmp_path)
    signed = evaluated(1, bleu_signature="signature")
    ended = AttemptEnded(1, "failed", "cause")
    run.with_events([(0.0, started()), (1.0, step(1)), (1.5, signed), (2.0, ended)])
    path = run.directory.events_of(1, 0)
    text = path.read_text()
    for word in ("cause", "signature", "host-0"):
        text = text.replace(f'"{word}"', "NaN")
    path.write_text(text)
    history = read(run)

    assert history.attempts[0].ends == []
    assert history.evaluations == []
    assert host_of(history.attempts[0], 0) == "the host of rank 0"
