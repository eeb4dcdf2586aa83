"""Run the synthetic study and write its rates as a table (Markdown) and a curve (SVG).

    study.py --program build/tests/study [--draws N] [--svg FILE] CHECKPOINT

The table goes to standard output: false alarms by type and depth, then for each fault the smallest
size that is found, and located, in 95 % of the draws over all depths. See README.md.
"""
import argparse
import subprocess
import sys

TYPES = ("bf16", "fp16", "fp32")
ENOUGH = 0.95
COLOURS = ("#1b6ca8", "#d1495b", "#2e7d32", "#8e5ea2", "#e0a100", "#00838f", "#6d4c41", "#c2185b",
           "#607d8b", "#9e9d24", "#3949ab")


class Cell:
    def __init__(self):
        self.draws = self.found = self.located = self.script = 0

    def add(self, counts):
        self.draws += counts[0]
        self.found += counts[1]
        self.located += counts[2]
        self.script += counts[3]


def run(program, draws, checkpoint):
    """Return the rows of the study and its exit code, which tells whether all rates are right."""
    process = subprocess.run([program, "--draws", str(draws), checkpoint], stdout=subprocess.PIPE,
                             check=False, universal_newlines=True)
    lines = process.stdout.splitlines()
    if process.returncode not in (0, 1) or not lines:
        sys.exit("study.py: %s ended with %s" % (program, process.returncode))
    rows = [line.split("\t") for line in lines[1:]]
    return [(r[0], int(r[1]), r[2], float(r[3]), [int(x) for x in r[4:]]) for r in rows], \
        process.returncode


def gather(rows):
    """{(type, fault, size): Cell over all depths} and {(type, depth): Cell of clean pairs}."""
    faults, clean = {}, {}
    for kind, depth, fault, size, counts in rows:
        key, table = ((kind, depth), clean) if fault == "none" else ((kind, fault, size), faults)
        table.setdefault(key, Cell()).add(counts)
    return faults, clean


def percent(size):
    return "%g %%" % (100 * size)


def smallest(faults, kind, fault, sizes, figure):
    """The smallest size from which on at least 95 % of the draws count."""
    good = None
    for size in reversed(sizes):
        cell = faults[kind, fault, size]
        if getattr(cell, figure) < ENOUGH * cell.draws:
            break
        good = size
    return "none" if good is None else percent(good)


def print_tables(faults, clean, names, sizes):
    depths = sorted({depth for _, depth in clean})
    print("| false alarms | " + " | ".join("%d layers" % d for d in depths) + " |")
    print("| --- |" + " --- |" * len(depths))
    for kind in TYPES:
        cells = [clean[kind, depth] for depth in depths]
        print("| %s | %s |" % (kind, " | ".join("%d of %d" % (c.found, c.draws) for c in cells)))
    print("\n| fault | " + " | ".join("%s" % kind for kind in TYPES) + " | constant bound, bf16 |")
    print("| --- |" + " --- |" * (len(TYPES) + 1))
    for fault in names:
        cells = []
        for kind in TYPES:
            found = smallest(faults, kind, fault, sizes, "found")
            located = smallest(faults, kind, fault, sizes, "located")
            cells.append(found if located == found else "%s, located %s" % (found, located))
        cells.append(smallest(faults, "bf16", fault, sizes, "script"))
        print("| %s | %s |" % (fault, " | ".join(cells)))


def write_svg(path, faults, names, sizes):
    """Detection in bf16 over the size of the fault, which is told on a logarithmic axis by place."""
    left, top, width, height = 60, 40, 520, 300
    step = width / (len(sizes) - 1)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 400" font-family="sans-serif" '
           'font-size="12">', '<rect width="860" height="400" fill="white"/>',
           '<text x="60" y="24" font-size="15">Faults found in bf16, by size</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = top + height * (1 - share)
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>' %
                   (left, y, left + width, y))
        out.append('<text x="52" y="%.1f" text-anchor="end">%d %%</text>' % (y + 4, 100 * share))
    for i, size in enumerate(sizes):
        out.append('<text x="%.1f" y="360" text-anchor="middle">%s</text>' %
                   (left + i * step, percent(size)))
    for number, fault in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        cells = [faults["bf16", fault, size] for size in sizes]
        points = " ".join("%.1f,%.1f" % (left + i * step, top + height * (1 - c.found / c.draws))
                          for i, c in enumerate(cells))
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' %
                   (points, colour))
        out.append('<text x="%d" y="%d" fill="%s">%s</text>' %
                   (left + width + 24, top + 14 + 24 * number, colour, fault))
    out.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n".join(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--svg", help="write the curve to this file")
    parser.add_argument("checkpoint")
    options = parser.parse_args()
    rows, code = run(options.program, options.draws, options.checkpoint)
    faults, clean = gather(rows)
    names = list(dict.fromkeys(fault for _, _, fault, _, _ in rows if fault != "none"))
    sizes = sorted({size for _, _, fault, size, _ in rows if fault != "none"})
    print_tables(faults, clean, names, sizes)
    if options.svg:
        write_svg(options.svg, faults, names, sizes)
    sys.exit(code)


if __name__ == "__main__":
    main()
