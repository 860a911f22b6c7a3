from dragoman.corpus.phrasebook import verbs as v

FRAMES = (*v.TRANSITIVE, *v.DITRANSITIVE, *v.DATIVE, *v.INTRANSITIVE, *v.MOTION, *v.PREPOSITIONAL)


def test_no_english_verb_has_two_translations_in_one_construction() -> None:
    for frames in (v.TRANSITIVE, v.DITRANSITIVE, v.DATIVE, v.INTRANSITIVE, v.MOTION):
        german = {}
        for frame in frames:
            english = (frame.verb.english, frame.verb.particle)
            said = frame.verb.prefix + frame.verb.infinitive
            objects = {noun.english for noun in frame.objects}
            for other, others in german.setdefault(english, []):
                assert other == said or not objects & others, english
            german[english].append((said, objects))


def test_a_frame_has_subjects_and_what_its_construction_needs() -> None:
    assert all(frame.subjects for frame in FRAMES)
    needs_object = (*v.TRANSITIVE, *v.DITRANSITIVE, *v.DATIVE, *v.PREPOSITIONAL)
    assert all(frame.objects for frame in needs_object)
    assert all(frame.places for frame in v.MOTION)


def test_things_and_persons_are_told_apart_as_objects() -> None:
    assert not any(noun.is_person for frame in v.THING_FRAMES for noun in frame.objects)
    assert all(frame.objects[-1].is_person for frame in v.PERSON_FRAMES)


def test_motion_takes_sein_in_the_perfect() -> None:
    assert {frame.verb.auxiliary for frame in v.MOTION} == {"sein"}


def test_participles_begin_as_german_ones_do() -> None:
    for frame in FRAMES:
        verb = frame.verb
        inseparable = verb.infinitive.startswith(("be", "ent", "er", "über", "ver", "zer"))
        has_ge = verb.participle.startswith(verb.prefix + "ge")
        assert has_ge or inseparable or verb.infinitive.endswith("ieren"), verb.lemma
