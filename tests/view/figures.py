"""What there is to see in a figure of matplotlib."""

from matplotlib.backends.backend_agg import FigureCanvasAgg


def texts(labels):
    return [label.get_text() for label in labels]


def rendered(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas
