"""A share from 0 to 1 → a colour, or a block character where there are no colours."""

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style

__all__ = ["block", "shade"]

# From night blue over teal to yellow. Each is lighter than the one before, so that the order survives in grey and for
# eyes that do not tell red from green.
RAMP = ((24, 28, 58), (40, 70, 128), (26, 122, 142), (92, 178, 118), (250, 228, 104))
# The same way in colours that a terminal with 256 of them has; the nearest ones to a blend are not always in order.
STEPS = ((0, 0, 95), (0, 95, 135), (0, 135, 135), (0, 175, 135), (95, 215, 135), (215, 215, 95), (255, 255, 135))
BLOCKS = "░▒▓█"
BLACK, WHITE = (0, 0, 0), (255, 255, 255)

RGB = tuple[int, int, int]


def shade(share: float, *, blended: bool = True) -> Style:
    """The colour of `share` as a background, under black or white digits, whichever can be read better.

    blended: any colour, where the terminal has them all; else one of seven that it has among 256.
    """
    share = min(max(share, 0.0), 1.0)
    ground = _between(share) if blended else STEPS[min(int(share * len(STEPS)), len(STEPS) - 1)]
    ink = max(BLACK, WHITE, key=lambda colour: contrast(colour, ground))
    return Style(color=_colour(ink), bgcolor=_colour(ground))


def block(share: float) -> str:
    """One of four densities."""
    return BLOCKS[min(int(max(share, 0.0) * len(BLOCKS)), len(BLOCKS) - 1)]


def contrast(one: RGB, other: RGB) -> float:
    """How well one colour reads on the other, from 1 to 21 (the WCAG contrast ratio)."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: RGB) -> float:
    """How light a colour is to the eye, from 0 to 1."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _between(share: float) -> RGB:
    place = share * (len(RAMP) - 1)
    step = min(int(place), len(RAMP) - 2)
    red, green, blue = (round(a + (b - a) * (place - step)) for a, b in zip(RAMP[step], RAMP[step + 1], strict=True))
    return red, green, blue


def _colour(rgb: RGB) -> Color:
    return Color.from_triplet(ColorTriplet(*rgb))
