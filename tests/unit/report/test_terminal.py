from unit.report.rendered import report

from dragoman.diagnosis.findings import Advice, Finding
from dragoman.report.sections import document_of
from dragoman.report.terminal import what_to_do


def test_each_advice_is_shown_with_what_it_saves_and_its_command(finished_run):
    advice = [Advice("Take a faster link.", "ssh host-1 ethtool eth0", 3700.0)]
    finding = Finding("network-bound", "high", "It is.", (), advice)

    assert what_to_do(document_of(report(finished_run, {"network": finding}))).splitlines() == [
        "",
        "What to do:",
        "1. Network: Take a faster link. (saves about 1 h 2 min)",
        "   ssh host-1 ethtool eth0",
    ]


def test_lines_for_a_recipe_are_shown_below_the_command(finished_run):
    lines = '[sync]\nmode = "bf16"'
    advice = [Advice("Send less.", "dragoman train x.toml --set sync.mode=bf16", recipe=lines)]
    finding = Finding("network-bound", "high", "It is.", (), advice)

    assert what_to_do(document_of(report(finished_run, {"network": finding}))).splitlines()[
        -4:
    ] == [
        "   dragoman train x.toml --set sync.mode=bf16",
        "   or, in a recipe:",
        "   [sync]",
        '   mode = "bf16"',
    ]


def test_without_advice_there_is_nothing_to_show(finished_report):
    assert what_to_do(document_of(finished_report)) == ""
