from dragoman.telemetry.read.tables import merge_orders


def test_names_are_merged_in_the_order_in_which_they_were_seen():
    orders = [["a", "c"], ["a", "b", "c", "d"], ["z", "a"]]
    assert merge_orders(orders) == ["z", "a", "b", "c", "d"]
