"""Labels in every script: a glyph for each sign, shaped and in its direction, also where the system has no fonts."""

import random
import unicodedata

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.textpath import TextPath

from regard.view import fonts
from regard.view.picture import caption
from regard.view.plot import heat_map

SCRIPTS = {
    "Chinese": "我喜欢学习",
    "traditional Chinese": "貓歡學習",
    "Japanese": "ありがとうカタカナ",
    "Korean": "한국어감사합니다",
    "Korean in parts": unicodedata.normalize("NFD", "한국어"),
    "Arabic": "مرحبا",
    "Persian": "پژگچ",
    "Hebrew": "שלום",
    "Hindi": "नमस्ते",
    "Thai": "สวัสดี",
    "Bengali": "বাংলা",
    "Tamil": "தமிழ்",
    "Greek": "αβγΩ",
    "Cyrillic": "Привет",
    "emoji": "😀🎉🚀❤🤖",
    "marks of tokenizers": "Ġ▁Ċ␣…",
}
FAMILY, FLAG, THUMB, RAINBOW = "👩\u200d👩\u200d👧", "🇯🇵", "👍🏽", "🏳\ufe0f\u200d🌈"


def forget():
    for cached in (fonts._chain, fonts._font, fonts.width):
        cached.cache_clear()
    fonts._families.clear()


@pytest.fixture(params=["this machine", "no fonts but those of packages"], autouse=True)
def fonts_here(request, monkeypatch):
    """Each test twice: with the fonts of the machine, and on one that has matplotlib and the font packages alone."""
    forget()
    if request.param != "this machine":
        own = [font for font in fontManager.ttflist if "mpl-data" in str(font.fname)]
        monkeypatch.setattr(fontManager, "ttflist", own)
    yield request.param
    monkeypatch.undo()
    forget()
    fonts._chain()  # makes the fonts of the packages known again


@pytest.fixture
def only_latin(monkeypatch):
    """A machine whose one font is matplotlib's own."""
    monkeypatch.setattr(fonts, "_chain", lambda: ("DejaVu Sans",))
    monkeypatch.setattr(fonts, "_regular_families", lambda: {"DejaVu Sans"})
    monkeypatch.setattr(fonts, "_families", {})


def outline(text):
    """The outline of `text` as a plot draws it, in the families that are found for it."""
    return TextPath((0, 0), text, size=100, prop=FontProperties(family=list(fonts.families_for([text]))))


def width(text):
    return fonts.width(text, fonts.families_for([text]), 100.0)


def drawn(label):
    canvas = FigureCanvasAgg(heat_map([[1.0]], [label]))
    canvas.draw()  # a missing glyph is a warning, and a warning is an error
    return np.asarray(canvas.buffer_rgba())


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_every_script_has_its_glyphs(text):
    assert fonts.drawable(text) == text
    families = fonts.families_for([text])
    for sign in set(text):
        found = [fonts._font(family).get_char_index(ord(sign)) for family in families]
        assert any(found), f"U+{ord(sign):04X} in {families}"
    assert caption(text).startswith(text[:3])
    drawn(text)


@pytest.mark.parametrize("script", ["Chinese", "Japanese", "Korean", "Arabic", "Hebrew", "Hindi", "Thai", "emoji"])
def test_no_sign_is_a_box(script):
    signs = [sign for sign in SCRIPTS[script] if unicodedata.category(sign)[0] != "M"]
    outlines = {outline(sign).vertices.tobytes() for sign in signs}
    assert len(outlines) == len(set(signs)), "boxes are all alike"
    assert not any(fonts.BOXES in family for sign in signs for family in fonts.families_for([sign]))


def test_arabic_letters_join():
    apart = sum(width(letter) for letter in "بهجت")
    assert width("بهجت") < 0.9 * apart, "letters in the middle of a word are narrower"
    assert width("ب\u200cه") > width("به"), "and a non-joiner keeps them as they are at an end"
    alone = outline("ب").vertices
    assert not any(np.array_equal(outline(word).vertices[: len(alone)], alone) for word in ("به", "هب"))


def test_hebrew_runs_from_right_to_left():
    both, last = outline("אב"), outline("ב")
    np.testing.assert_allclose(
        both.vertices[: len(last.vertices)], last.vertices, err_msg="the last letter is leftmost"
    )
    mixed = outline("ab אב")
    assert mixed.vertices[:, 0].max() > outline("ab").vertices[:, 0].max()


def test_a_vowel_sign_of_hindi_stands_before_its_letter():
    letter, syllable = outline("क"), outline("कि")
    shift = syllable.vertices[-len(letter.vertices) :, 0] - letter.vertices[:, 0]
    assert shift.min() > 10
    assert width("क्ष") < width("क") + width("ष"), "two consonants become one sign"


def test_emoji_that_are_joined_are_one_picture():
    one = width("👩")
    for sequence in (FAMILY, FLAG, THUMB, RAINBOW):
        label = caption(sequence)
        assert width(label) == pytest.approx(one, rel=0.3), ascii(label)
        drawn(sequence)
    assert caption(FAMILY) == FAMILY
    assert caption(FLAG) == FLAG
    assert caption(THUMB) == "👍"
    assert "U+" not in caption("👩\u200d🚀 ❤\ufe0f\u200d🔥")


def test_joiners_stay_where_they_shape_a_word_and_nowhere_else():
    assert caption("می\u200cخواهم") == "می\u200cخواهم"
    assert width("می\u200cخواهم") != width("میخواهم")
    assert caption("a\u200cb") == "a\\u200cb"
    assert caption("\u200d") == "\\u200d"
    assert caption(f"{FAMILY}{FAMILY}{FAMILY}").endswith("…")


def test_a_letter_whose_marks_no_font_has_keeps_what_can_be_drawn():
    assert caption("e\u0301") == "e\u0301"
    assert caption("é\u20e3") == "éU+20E3"
    drawn("é\u20e3")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_token_there_is_no_box(seed):
    draw = random.Random(seed)
    signs = [chr(code) for code in range(32, 0x20000) if unicodedata.category(chr(code)) not in {"Cs", "Cn"}]
    marks = [sign for sign in signs if unicodedata.category(sign)[0] == "M"]
    emoji = [sign for sign in signs if sign > "\u2600" and unicodedata.category(sign) == "So"]
    for _ in range(60):
        for token in (
            "".join(draw.choices(signs, k=4)),
            draw.choice(signs) + "".join(draw.choices(marks, k=2)),
            "\u200d".join(draw.choices(emoji, k=3)),
        ):
            label = caption(token)
            assert label
            fonts.width(label, fonts.families_for([label]), 10.0)  # a missing glyph would be a warning, and so an error


def test_the_check_above_would_notice_a_box():
    with pytest.warns(UserWarning, match="Glyph 29483.*missing"):
        fonts.width("猫", ("DejaVu Sans",), 11.0)


@pytest.mark.usefixtures("only_latin")
def test_a_character_that_no_font_has_is_written_as_its_number(capfd, caplog):
    figure = heat_map(np.eye(3), ["猫", "a한", "b"], title="猫\nb")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["U+732B", "aU+D55C", "b"]
    assert figure.get_suptitle() == "U+732B\nb"
    FigureCanvasAgg(figure).draw()
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_font_outside_the_chain_is_found(monkeypatch):
    monkeypatch.setattr(fonts, "_chain", lambda: ("DejaVu Sans",))
    monkeypatch.setattr(fonts, "_regular_families", lambda: {"DejaVu Sans", "Noto Sans SC", "no such font"})
    monkeypatch.setattr(fonts, "_families", {})
    fonts._packaged()
    assert fonts.drawable("a猫") == "a猫"
    assert fonts.families_for(["a猫"]) == ("DejaVu Sans", "Noto Sans SC")
    assert fonts.families_for(["a"]) == ("DejaVu Sans",)


def test_a_font_with_empty_outlines_is_passed_over(monkeypatch):
    class Coloured:
        """As fonts of coloured emoji look to matplotlib: a glyph for everything, and no line in any."""

        def get_char_index(self, code):
            return 7

        def load_glyph(self, glyph, flags):
            pass

        def get_path(self):
            return np.empty((0, 2)), np.empty(0, dtype=np.uint8)

    real = fonts._font
    monkeypatch.setattr(fonts, "_chain", lambda: ("Coloured Emoji", "DejaVu Sans"))
    monkeypatch.setattr(fonts, "_font", lambda family: Coloured() if family == "Coloured Emoji" else real(family))
    monkeypatch.setattr(fonts, "_families", {})
    assert fonts.families_for(["a😀"]) == ("DejaVu Sans",)


def test_fonts_without_a_regular_weight_and_the_font_of_boxes_are_left_out():
    families = fonts._regular_families()
    assert "DejaVu Sans" in families
    assert not [family for family in families if "Last Resort" in family]


def test_packages_that_are_not_installed_are_done_without(monkeypatch):
    monkeypatch.setattr(fonts, "PACKAGES", {"no_such_package_of_fonts": "*.ttf"})
    assert fonts._packaged() == []
