"""What a page does in the browser, measured inside it: when it is painted, when it answers, how often it draws."""

import io
import statistics
import sys
import time
from pathlib import Path

# Runs before the page's own scripts, in either page. Drawing is noticed where every canvas does it. A pause is the time
# between two frames that were drawn while there was something to draw: the hand's own pauses do not count.
PROBE = """(() => {
  const probe = (window.probe = { painted: null, asked: null, answered: null, pauses: [] });
  let standing = false, drawn = false, moved = false, waiting = false, since = 0;
  for (const name of ["drawImage", "putImageData", "fillRect", "clearRect"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) {
      drawn ||= this.canvas.isConnected;
      return draw.apply(this, given);
    };
  }
  const asked = () => {
    probe.asked = performance.now();
    probe.answered = null;
    moved = true;
    drawn = false;
  };
  addEventListener("wheel", asked, { capture: true, passive: true });
  addEventListener("hashchange", asked, { capture: true });
  addEventListener("pointermove", (event) => { moved ||= event.buttons > 0; }, { capture: true, passive: true });
  const frame = (now) => {
    probe.painted ??= PICTURE;
    if (drawn && probe.asked !== null) probe.answered ??= performance.now();
    if (drawn) probe.pauses.push(now - since);
    if (drawn || !waiting) since = now;
    waiting = moved || (waiting && !drawn);
    moved = drawn = false;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})();"""

# When the first picture had been painted: what stands when one frame begins has been painted when the next begins.
# BertViz draws all its lines in one go; our app sets a mark in the frame after the one that it drew the map in.
BERTVIZ = 'standing ? performance.now() : ((standing = document.querySelector("svg line") !== null), null)'
OURS = 'performance.getEntriesByName("regard:picture")[0]?.startTime ?? null'
# The app sets it whenever all that is in view is exact. One that is older than the question is of another view.
SHARP = 'performance.getEntriesByName("regard:sharp").find((mark) => mark.startTime > probe.asked)'


class Window:
    """One page in a window of its own."""

    def __init__(self, browser, path: Path, picture: str, limit: float = 120.0) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 800})
        self.context.add_init_script(PROBE.replace("PICTURE", picture))
        self.page = self.context.new_page()
        self.page.set_default_timeout(limit * 1000)
        self.page.goto(path.as_uri(), wait_until="commit")

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def painted(self) -> float:
        """Seconds from the start of the navigation until the first picture had been painted."""
        self.page.wait_for_function("() => probe.painted !== null")
        return self.page.evaluate("probe.painted") / 1000

    def check(self) -> None:
        """See with other eyes that there is a picture."""
        if (found := colours(self.page.screenshot())) < 20:
            raise RuntimeError(f"the page says that it is painted, but a picture of it has only {found} colours.")

    def answered(self) -> float:
        """Seconds from the start of the navigation until the map had been drawn anew after a turn of the wheel."""
        self.page.mouse.move(*self.centre())
        self.page.mouse.wheel(0, -120)
        self.page.wait_for_function("() => probe.answered !== null")
        return self.page.evaluate("probe.answered") / 1000

    def jumped(self, fragment: str) -> float:
        """Seconds from a change of the address, which says what is looked at, until all that is in view is exact."""
        self.page.evaluate("fragment => { location.hash = fragment; }", fragment)
        self.page.wait_for_function(f"() => probe.answered !== null && {SHARP} !== undefined")
        return self.page.evaluate(f"{SHARP}.startTime - probe.asked") / 1000

    def frames_per_second(self, seconds: float = 3.0) -> tuple[float, float]:
        """How often the map is drawn while it is zoomed and dragged without a pause: the median; 19 of 20 are faster.

        The input comes from outside, as a hand's does, and a frame in which the map was not drawn does not count.
        """
        x, y = self.centre()
        self.page.mouse.move(x, y)
        self.page.evaluate("probe.pauses.length = 0")
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for turn in [-60] * 12 + [60] * 8:  # in a little further than out
                self.page.mouse.wheel(0, turn)
            self.page.mouse.down()
            for step in range(20):
                self.page.mouse.move(x + 12 * step, y + 6 * step)
            self.page.mouse.up()
            self.page.mouse.move(x, y)
        pauses = sorted(self.page.evaluate("probe.pauses"))
        return 1000 / statistics.median(pauses), 1000 / pauses[int(0.95 * len(pauses))]

    def centre(self) -> tuple[float, float]:
        """The middle of the largest canvas: the map."""
        return tuple(
            self.page.evaluate("""() => {
          const boxes = [...document.querySelectorAll("canvas")].map((canvas) => canvas.getBoundingClientRect());
          const largest = boxes.sort((a, b) => b.width * b.height - a.width * a.height)[0];
          return [largest.x + largest.width / 2, largest.y + largest.height / 2];
        }""")
        )


def started():
    """Chromium as the tests start it."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.browser.chromium import started

    return started()


def colours(screenshot: bytes) -> int:
    """How many colours a picture has."""
    from PIL import Image

    picture = Image.open(io.BytesIO(screenshot)).convert("RGB")
    return len(picture.getcolors(maxcolors=1 << 24))
