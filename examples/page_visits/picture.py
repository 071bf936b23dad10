"""The picture of `make pipeline-demo`: one HTML file with SVG in it, and nothing to load."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COLOURS = ("#3b6ea5", "#d98032", "#5a9367", "#8b5a9b", "#b0413e", "#777777")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 860, 260, 70, 36, 14
STYLE = (
    "body{font:15px sans-serif;margin:2em auto;max-width:900px;color:#222}"
    "svg text{font:12px sans-serif;fill:#444}"
    "h2{font-size:17px;margin:1.6em 0 .3em}"
    ".axis{stroke:#999}.grid{stroke:#e4e4e4}"
)


@dataclass(frozen=True)
class Picture:
    """What is drawn: counts by site and window, and (seconds, lag, late rows) as the job ran."""

    counts: Sequence[Mapping[str, Any]]
    samples: Sequence[tuple[float, int, int]]


def page(picture: Picture) -> str:
    """The whole file."""
    lag = [(at, lag) for at, lag, _ in picture.samples]
    late = [(at, late) for at, _, late in picture.samples]
    parts = [
        ("Visits by site and hour (UTC)", _bars(picture.counts)),
        ("Records behind, by seconds since the job was started", _line(lag, COLOURS[0])),
        ("Visits that came too late for their hour, by seconds since the job was started", _line(late, COLOURS[4])),
    ]
    body = "".join(f"<h2>{html.escape(title)}</h2>{drawing}" for title, drawing in parts)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Page visits</title>'
        f"<style>{STYLE}</style></head><body><h1>Page visits</h1>{body}</body></html>\n"
    )


def _bars(counts: Sequence[Mapping[str, Any]]) -> str:
    """A stack for each hour, a colour for each site."""
    sites = sorted({str(each["site"]) for each in counts})
    hours = sorted({str(each["window_start"]) for each in counts})
    values = {(str(each["window_start"]), str(each["site"])): int(each["visits"]) for each in counts}
    highest = max((sum(values.get((hour, site), 0) for site in sites) for hour in hours), default=0)
    scale = _Scale(max(len(hours), 1), max(highest, 1))
    shapes = [scale.grid()]
    for number, hour in enumerate(hours):
        below = 0
        for site, colour in zip(sites, _colours(len(sites)), strict=True):
            visits = values.get((hour, site), 0)
            top, bottom = scale.y(below + visits), scale.y(below)
            title = html.escape(f"{site}, {hour}: {visits}")
            shapes.append(
                f'<rect x="{scale.x(number + 0.1):.1f}" y="{top:.1f}" width="{scale.x(0.8) - LEFT:.1f}" '
                f'height="{bottom - top:.1f}" fill="{colour}"><title>{title}</title></rect>'
            )
            below += visits
        shapes.append(_text(scale.x(number + 0.5), HEIGHT - BOTTOM + 16, hour[11:16], "middle"))
    legend = "".join(
        f'<span style="color:{colour}">&#9632;</span> {html.escape(site)} &nbsp; '
        for site, colour in zip(sites, _colours(len(sites)), strict=True)
    )
    return f"{_drawing(shapes)}<p>{legend}</p>"


def _line(points: Sequence[tuple[float, int]], colour: str) -> str:
    """Steps through the points: a value holds until the next look."""
    last_s = max((at for at, _ in points), default=1.0)
    scale = _Scale(max(last_s, 0.1), max((value for _, value in points), default=0) or 1)
    shapes = [scale.grid()]
    path, before = [], 0
    for at, value in points:
        path.append(f"{scale.x(at):.1f},{scale.y(before):.1f} {scale.x(at):.1f},{scale.y(value):.1f}")
        before = value
    shapes.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(path)}"/>')
    shapes += [
        _text(scale.x(last_s * part / 5), HEIGHT - BOTTOM + 16, f"{last_s * part / 5:.0f} s", "middle")
        for part in range(6)
    ]
    return _drawing(shapes)


class _Scale:
    """Values to places in the drawing, with round numbers on the left."""

    def __init__(self, width: float, highest: int) -> None:
        self._width = width
        step = 10 ** (len(str(highest)) - 1)
        self._step = next(each for each in (step // 5 or 1, step // 2 or 1, step, step * 2) if highest / each <= 6)
        self._highest = -(-highest // self._step) * self._step

    def x(self, value: float) -> float:
        return LEFT + value / self._width * (WIDTH - LEFT - 10)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / self._highest * (HEIGHT - BOTTOM - TOP)

    def grid(self) -> str:
        lines = []
        for value in range(0, self._highest + 1, self._step):
            kind = "grid" if value else "axis"
            y = self.y(value)
            lines.append(f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>')
            lines.append(_text(LEFT - 8, y + 4, f"{value:,}", "end"))
        return "".join(lines)


def _colours(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _drawing(shapes: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(shapes)}</svg>'
