from unit.serve.served import serving

from dragoman.serve.answers import Error, Health, Language, ServedModel, Settings, Translation


def test_what_the_server_answers_fits_its_schemas(tmp_path):
    with serving(tmp_path) as served:
        get = served.client.get
        Settings.model_validate(get("/frontend/settings").json(), strict=True)
        Health.model_validate(get("/health").json(), strict=True)
        Error.model_validate(get("/nothing").json(), strict=True)
        languages, models = get("/languages").json(), get("/models").json()
        assert languages
        assert models
        for language in languages:
            Language.model_validate(language, strict=True)
        for model in models:
            ServedModel.model_validate(model, strict=True)
        for q in ("One.", ["One.", "Two."]):
            answer = served.translate(q=q, alternatives=1, source="auto").json()
            Translation.model_validate(answer, strict=True)
