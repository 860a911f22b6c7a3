import threading

from dragoman.telemetry.events import AttemptEnded, Stamped, StepDone
from dragoman.telemetry.export import background
from dragoman.telemetry.export.background import BackgroundExporter


class Recording:
    def __init__(self):
        self.sent, self.closed = [], False

    def send(self, events):
        self.sent += [stamped.event for stamped in events]

    def close(self):
        self.closed = True


def done(number):
    return StepDone(number, 0.5, 3.0, 100, 1e-3, 0.7, True, 0.5)


def test_a_service_gets_a_step_a_second_and_everything_else():
    service = Recording()
    exporter = BackgroundExporter("test", lambda: service)
    ended = AttemptEnded(40, "finished", "")
    for tenth in range(40):
        exporter(Stamped(0.0, 100 + tenth / 10, done(tenth)))
    exporter(Stamped(0.0, 104.0, ended))
    exporter.close()
    assert service.sent == [done(0), done(10), done(20), done(30), ended]
    assert service.closed


def test_a_service_that_hangs_holds_up_nobody(monkeypatch):
    monkeypatch.setattr(background, "CLOSE_TIMEOUT_S", 0.05)
    gate = threading.Event()
    opened = threading.Event()

    def hang():
        opened.set()
        gate.wait()
        return Recording()

    exporter = BackgroundExporter("test", hang)
    assert opened.wait(30)
    for number in range(3 * background.CAPACITY):
        exporter(Stamped(0.0, float(2 * number), done(number)))
    exporter.close()
    gate.set()


def test_a_service_that_cannot_be_opened_or_fails_is_one_warning(caplog):
    def refuse():
        raise RuntimeError("no such server\nand a long story")

    exporter = BackgroundExporter("mlflow", refuse)
    for number in range(5):
        exporter(Stamped(0.0, float(2 * number), done(number)))
    exporter.close()
    assert caplog.messages == ["mlflow does not get this run's figures: no such server"]
    caplog.clear()

    class Failing(Recording):
        def send(self, events):
            raise ConnectionError

    failing = Failing()
    exporter = BackgroundExporter("wandb", lambda: failing)
    exporter(Stamped(0.0, 0.0, done(1)))
    exporter.close()
    assert caplog.messages == ["wandb misses some of this run's figures: ConnectionError"]
    assert failing.closed
