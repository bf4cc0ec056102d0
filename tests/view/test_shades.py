import pytest
from rich.color import ColorSystem

from regard.view.shades import block, contrast, luminance, shade

SHARES = [place / 200 for place in range(201)]


def ground(share, blended=True):
    return tuple(shade(share, blended=blended).bgcolor.triplet)


@pytest.mark.parametrize(("blended", "colours"), [(True, 150), (False, 7)])
def test_a_larger_share_is_lighter(blended, colours):
    light = [luminance(ground(share, blended)) for share in SHARES]
    assert light == sorted(light)
    assert light[-1] > 0.7 > 0.03 > light[0]
    assert len({ground(share, blended) for share in SHARES}) >= colours


@pytest.mark.parametrize("blended", [True, False])
def test_digits_can_be_read_on_every_shade(blended):
    inks = (tuple(shade(share, blended=blended).color.triplet) for share in SHARES)
    assert min(contrast(ink, ground(share, blended)) for ink, share in zip(inks, SHARES, strict=True)) >= 4.5


def test_a_terminal_with_256_colours_has_the_steps_as_they_are():
    for share in SHARES:
        color = shade(share, blended=False).bgcolor
        assert color.downgrade(ColorSystem.EIGHT_BIT).get_truecolor() == color.triplet


def test_contrast_is_that_of_wcag():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def test_blocks():
    assert "".join(block(share) for share in (-1, 0, 0.24, 0.26, 0.51, 0.76, 1, 2)) == "░░░▒▓███"
    assert ground(-1) == ground(0)
    assert ground(7) == ground(1)
