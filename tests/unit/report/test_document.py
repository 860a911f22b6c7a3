from dragoman.report.document import Appendix


def test_an_appendix_can_be_linked_to():
    assert Appendix("Attempts and troubles", []).anchor == "attempts-and-troubles"
