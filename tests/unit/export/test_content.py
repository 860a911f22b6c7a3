def test_the_weights_are_those_of_the_model_by_its_own_names(content):
    assert content.weights["embedding.weight"].shape == (content.tokenizer.size, 16)
    assert sum(name.startswith("encoder.") for name in content.weights) == 2 * 10
