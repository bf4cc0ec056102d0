"""Settings: checked when made, changed by files and options, written and read back."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileError, OptionError
from regard.training import recipes
from regard.training.changes import changed, of_file, of_option
from regard.training.settings import DataSettings, TokenizerSettings, TrainingSettings
from regard.training.shape import settable, shaped
from regard.training.toml import written

BASE = recipes.translation()


def after(*options, base=BASE, model=()):
    return changed(base, [of_option(option, base, model) for option in options], model)


class TestChecked:
    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"steps": "many"}, "steps is 'many'; it must be a whole number."),
            ({"steps": True}, "steps is True; it must be a whole number."),
            ({"steps": 0}, "steps is 0; it must be 1 or more."),
            ({"steps": 10, "epochs": 1}, "steps is 10 and epochs is 1.0; give one of them."),
            ({}, "steps is None and epochs is None; give one of them."),
            ({"epochs": 0}, "epochs is 0.0; it must be a number above 0."),
            ({"steps": 1, "learning_rate": float("nan")}, "learning_rate is nan"),
            ({"steps": 1, "betas": [0.9]}, "betas is [0.9]; it must be a list of 2, each a number."),
            ({"steps": 1, "betas": [0.9, 1.0]}, "betas is (0.9, 1.0)"),
            ({"steps": 1, "schedule": "linear"}, "one of cosine, inverse-sqrt, constant"),
            ({"steps": 1, "schedule": "inverse-sqrt", "warmup": 0}, "warmup is 0; it must be 1 or more with inverse-"),
            ({"steps": 1, "compile": 1}, "compile is 1; it must be true or false."),
            ({"steps": 1, "label_smoothing": 1.0}, "label_smoothing is 1.0"),
            ({"steps": 1, "clip": -1}, "clip is -1.0; it must be a number, 0 or more."),
            ({"steps": 1, "final_share": 1.5}, "final_share is 1.5"),
            ({"steps": 1, "keep": 0}, "keep is 0"),
            ({"steps": 1, "warmup": 1.5}, "warmup is 1.5; it must be a whole number of steps, or a share of all steps"),
            ({"steps": 1, "evaluate_every": 0.0}, "evaluate_every is 0.0"),
            ({"steps": 1, "evaluate_every": 0}, "evaluate_every is 0; it must be 1 or more."),
        ],
    )
    def test_training(self, wrong, says):
        with pytest.raises(OptionError, match=re.escape(says)):
            TrainingSettings(**wrong)

    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"held_out": 1}, "held_out is 1.0; it must be a share between 0 and 1, or files."),
            ({"held_out": "0"}, "held_out is 0.0"),
            ({"held_out": []}, "held_out is ()"),
            ({"too_long": "hide"}, "one of cut, skip, error"),
            ({"form": "xml"}, "form is 'xml'; it must be one of tsv, csv"),
            ({"fields": {"source": 1.5}}, "fields is {'source': 1.5}; it must be names"),
            ({"fields": "=en"}, "fields is '=en'"),
            ({"paths": "a\udcff"}, "paths is"),
            ({"longest": 0}, "longest is 0"),
        ],
    )
    def test_data(self, wrong, says):
        with pytest.raises(OptionError, match=re.escape(says)):
            DataSettings(**wrong)

    def test_a_vocabulary_has_room_for_every_byte(self):
        with pytest.raises(OptionError, match=r"size is 259; it must be 260 or more"):
            TokenizerSettings(size=259)

    def test_what_is_meant_is_understood(self):
        data = DataSettings(paths="a.tsv", fields="source=en,target=zh", held_out="0.05")
        assert (data.paths, data.fields, data.held_out) == (("a.tsv",), {"source": "en", "target": "zh"}, 0.05)
        assert DataSettings(fields="text=0, label=1").fields == {"text": 0, "label": 1}
        assert DataSettings(fields=["text", "label"]).fields == {"text": "text", "label": "label"}
        assert DataSettings(held_out="valid.tsv").held_out == ("valid.tsv",)
        training = TrainingSettings(epochs=3, learning_rate=1)
        assert isinstance(training.epochs, float)
        assert isinstance(training.learning_rate, float)


class TestOptions:
    def test_by_section_and_by_name_alone(self):
        settings = after("model.width=512", "heads=8", "training.learning_rate=3e-4", "schedule=cosine", "compile=true")
        assert (settings.model["width"], settings.model["heads"]) == (512, 8)
        assert (settings.training.learning_rate, settings.training.schedule) == (3e-4, "cosine")
        assert settings.training.compile is True
        assert BASE.model["width"] == 256

    def test_texts_need_no_quotes(self):
        assert after("data.paths=/a b/train.tsv").data.paths == ("/a b/train.tsv",)
        assert after('paths=["a.tsv", "b.tsv"]').data.paths == ("a.tsv", "b.tsv")
        assert after("tokenizer.path=123").tokenizer.path == "123"
        assert after("fields=source=en,target=zh").data.fields == {"source": "en", "target": "zh"}
        assert after("model.activation=gelu", model={"activation"}).model["activation"] == "gelu"

    def test_steps_and_epochs_take_each_others_place(self):
        assert BASE.training.epochs
        assert (after("steps=100").training.steps, after("steps=100").training.epochs) == (100, None)
        assert (after("steps=100", "epochs=2").training.steps, after("steps=100", "epochs=2").training.epochs) == (
            None,
            2,
        )

    @pytest.mark.parametrize(
        ("option", "says"),
        [
            ("widht=512", "--set widht=512: there is no setting widht; did you mean width"),
            ("model.widht=512", "--set model.widht=512: [model] has no widht; did you mean width"),
            ("training.qqq=1", "[training] has no qqq. It has steps, epochs,"),
            ("qqq=1", "there is no setting qqq."),
            ("modle.width=1", "there is no section modle; did you mean model?"),
            ("width", "write key=value"),
            ("=5", "write key=value"),
            ("steps=many", "--set steps=many: training.steps is 'many'; it must be a whole number."),
            ("steps=1.5", "--set steps=1.5: training.steps is 1.5; it must be a whole number."),
            ("warmup=-1", "--set warmup=-1: training.warmup is -1; it must be 0 or more."),
            ("compile=True", "training.compile is 'True'; it must be true or false."),
            ("learning_rate=3\nwarmup=5", "learning_rate is '3\\nwarmup=5'"),
        ],
    )
    def test_what_does_not_fit_is_told_with_where_it_was_said(self, option, says):
        with pytest.raises(OptionError, match=re.escape(says)):
            after(option)

    def test_a_name_in_two_sections_must_say_which(self):
        with pytest.raises(OptionError, match=r"write data.longest or model.longest"):
            of_option("longest=5", BASE, {"longest"})


class TestFiles:
    def test_a_run_is_written_and_read_back(self, tmp_path):
        settings = after("steps=7", "fields=source=en,target=zh", 'paths=["a\\u007f\\n猫.tsv"]', "betas=[0.9, 0.95]")
        settings.save(tmp_path, "translation")
        again = changed(recipes.classification(), of_file(tmp_path / "run.toml", "translation"), settings.model)
        assert again.data == settings.data
        assert again.tokenizer == settings.tokenizer
        assert again.training == settings.training
        assert changed(BASE, of_file(tmp_path / "run.toml", "translation")) == settings
        assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("[modle]\n", "there is no section [modle]; did you mean model?"),
            ("model = 3\n", "model is 3; it must be a section, [model]."),
            ("[training]\nlerning_rate = 1\n", "my.toml: [training] has no lerning_rate; did you mean learning_rate"),
            ("[training]\nsteps = 'x'\n", "my.toml: training.steps is 'x'; it must be a whole number."),
            ("task = 'classification'\n", "my.toml is for the task 'classification', and this is translation"),
        ],
    )
    def test_files_that_make_no_sense(self, tmp_path, content, says):
        (tmp_path / "my.toml").write_text(content)
        with pytest.raises(OptionError, match=re.escape(says)):
            changed(BASE, of_file(tmp_path / "my.toml", "translation"))

    @pytest.mark.parametrize("content", [b"[", b"a = \xff", b"a = 1\na = 2"])
    def test_files_that_are_no_toml(self, tmp_path, content):
        (tmp_path / "my.toml").write_bytes(content)
        with pytest.raises(FileError, match=r"my\.toml is no TOML"):
            of_file(tmp_path / "my.toml", "translation")
        with pytest.raises(FileError, match=r"cannot read .*none\.toml"):
            of_file(tmp_path / "none.toml", "translation")


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
TABLES = st.dictionaries(st.text(), VALUES | st.dictionaries(st.text(), VALUES, max_size=2), max_size=3)


@given(st.dictionaries(st.text(), VALUES | TABLES, max_size=4))
def test_toml_is_what_was_written(tables):
    assert tomllib.loads(written(tables)) == tables


class TestRecipes:
    @pytest.mark.parametrize("task", recipes.TASKS)
    def test_each_is_whole_and_can_be_changed(self, task):
        settings = recipes.TASKS[task](steps=5, width=64, data={"paths": ["a.tsv"]})
        assert (settings.training.steps, settings.model["width"], settings.data.paths) == (5, 64, ("a.tsv",))

    def test_what_is_unknown_is_told(self):
        with pytest.raises(OptionError, match="there is no setting lerning_rate; did you mean learning_rate"):
            recipes.classification(lerning_rate=1)


def config_of(task):
    """The config of a task's model."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("torch")
    from regard.training.jobs import JOBS

    assert JOBS.keys() == recipes.TASKS.keys()
    return JOBS[task].Model.Config


class TestShares:
    def test_of_all_steps(self):
        settings = TrainingSettings(epochs=1, warmup=0.1, evaluate_every=0.05)
        assert [(one.warmup, one.evaluate_every) for one in map(settings.counted, (3, 500, 60_000))] == [
            (1, 1), (50, 25), (6000, 3000)
        ]  # fmt: skip

    def test_a_number_of_steps_is_that_number(self):
        settings = TrainingSettings(epochs=1, warmup=0, evaluate_every=500).counted(10)
        assert (settings.warmup, settings.evaluate_every) == (0, 500)

    @pytest.mark.parametrize("task", recipes.TASKS)
    def test_a_recipe_fits_a_small_data_set(self, task):
        """A run of a few epochs of 30 steps gets to its highest rate early, and looks at held-out text on the way."""
        settings = recipes.TASKS[task]().training.counted(150)
        assert settings.warmup <= 15
        assert settings.evaluate_every <= 15


class TestShape:
    @pytest.mark.parametrize("task", recipes.TASKS)
    def test_the_recipe_is_a_model(self, task):
        given = {"vocabulary": 300, "tokenizer": "abc", "labels": ("a", "b"), "longest": 64, "segments": 0}
        given["segments"] = 2 if task == "question-answering" else 0
        config = shaped(config_of(task), recipes.TASKS[task](width=64).model, **given)
        reading = getattr(config, "reader", config)
        assert (reading.width, reading.vocabulary, reading.longest) == (64, 300, 64)
        assert reading.depth == recipes.TASKS[task]().model["depth"]

    def test_one_name_goes_into_each_config_that_has_it(self):
        config = shaped(config_of("classification"), {"dropout": 0.25}, vocabulary=300, labels=("a", "b"))
        assert config.dropout == config.reader.dropout == 0.25

    def test_what_is_unknown_or_not_to_be_set_is_told(self):
        config = config_of("classification")
        with pytest.raises(OptionError, match=r"\[model\] has no poling, .*; did you mean pooling\?"):
            shaped(config, {"poling": "mean"}, vocabulary=300)
        assert not settable(config) & {"vocabulary", "labels", "longest", "reader"}


def test_every_setting_is_in_the_page():
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    kinds = (DataSettings, TokenizerSettings, TrainingSettings)
    assert [field.name for kind in kinds for field in fields(kind) if f"`{field.name}`" not in page] == []


def test_every_setting_is_in_a_file():
    text = BASE.as_toml("translation")
    told = tomllib.loads(text)
    wanted = {field.name for field in fields(TrainingSettings)} - {"steps"}  # None, as epochs are given
    assert told["training"].keys() == wanted
    assert told["training"]["epochs"] == BASE.training.epochs


def test_a_vocabulary_beyond_any_model_is_refused():
    with pytest.raises(OptionError, match=r"size is 16777217; it must be at most 16,777,216"):
        TokenizerSettings(size=2**24 + 1)
