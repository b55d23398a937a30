#!/usr/bin/env python3
"""Draws what a request costs against the number of events stored.

Usage: scripts/chart.py [docs/images/cost.tsv] > docs/images/cost.svg

Each line of the file has the millions of events stored, the traffic, and the cost of a request as a multiple of HAProxy's
check of it, as `Gateway PATH traffic` prints them; lines that begin with # are left out. The picture follows the
reader's choice of light or dark.
"""
import sys
from pathlib import Path

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 200, 24, 52
# Legible on white and on black, and told apart by their marks too.
COLORS = ["#2f6fde", "#c2571a", "#1f8a5b", "#a0489c"]


def read(path):
    series = {}
    for line in Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            stored, name, cost = line.split("\t")
            series.setdefault(name, []).append((float(stored), float(cost)))
    return {name: sorted(points) for name, points in series.items()}


def step(largest):
    """The distance of lines that cuts an axis into four to eight."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if largest / (size * factor) <= 8:
                return size * factor
        size *= 10


def mark(index, x, y):
    shapes = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>',
        f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>',
        f'<path d="M{x:.1f} {y - 5.5:.1f}l5.5 9.5h-11z"/>',
        f'<path d="M{x:.1f} {y - 6:.1f}l6 6-6 6-6-6z"/>',
    ]
    return f'<g fill="{COLORS[index]}">{shapes[index]}</g>'


def draw(series):
    points = [point for values in series.values() for point in values]
    x_step, y_step = step(max(x for x, _ in points)), step(max(y for _, y in points))
    x_end = -(-max(x for x, _ in points) // x_step) * x_step
    y_end = -(-max(y for _, y in points) // y_step) * y_step

    def place(x, y):
        return (LEFT + x / x_end * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / y_end * (HEIGHT - TOP - BOTTOM))

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>CPU of the gateway for a request, against events stored</title>",
        "<style>text{font:13px system-ui,sans-serif;fill:#333}.line{stroke:#d8d8d8}.series{fill:none;stroke-width:2}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.line{stroke:#444}}</style>",
    ]
    y = 0
    while y <= y_end:
        _, row = place(0, y)
        out.append(f'<line class="line" x1="{LEFT}" y1="{row:.1f}" x2="{WIDTH - RIGHT}" y2="{row:.1f}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{row + 4:.1f}" text-anchor="end">{y:g}</text>')
        y += y_step
    x = 0
    while x <= x_end:
        column, row = place(x, 0)
        out.append(f'<text x="{column:.1f}" y="{row + 18:.1f}" text-anchor="middle">{x:g}</text>')
        x += x_step
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
               "millions of events stored</text>")
    out.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">'
               "cost of a request to HAProxy's check of it</text>")
    # Names beside the ends of their lines, the highest first, none on another.
    ends = sorted(((place(*values[-1])[1], name) for name, values in series.items()))
    row = 0
    names = {}
    for end, name in ends:
        row = max(end, row + 18)
        names[name] = row
    for index, (name, values) in enumerate(series.items()):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in values))
        out.append(f'<polyline class="series" stroke="{COLORS[index]}" points="{path}"/>')
        out += [mark(index, *place(*point)) for point in values]
        out.append(mark(index, WIDTH - RIGHT + 22, names[name]))
        out.append(f'<text x="{WIDTH - RIGHT + 34}" y="{names[name] + 4:.1f}">{name}</text>')
    return "\n".join(out + ["</svg>"])


if __name__ == "__main__":
    print(draw(read(sys.argv[1] if len(sys.argv) > 1 else "docs/images/cost.tsv")))
