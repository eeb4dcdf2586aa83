#!/usr/bin/env python3
"""Make the pictures of README.md: what the program prints in a terminal, as SVG, and its page as a
browser shows it.

    make.py PROGRAM             writes terminal.svg and, where there is a Chromium, page.webp
    make.py PROGRAM --check     fails where terminal.svg is not what the program prints now
"""
import base64
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(ROOT, "tests", "data", "megatron")
RUNS = {"tp1": "s_base", "tp2-dp2": "tp2dp2", "pp2-dp2": "fr_pp2dp2", "tp2-new-overlap": "bug_double_layer1",
        "tp2-new-kernel": "bug_nan_fc2_2"}
COMMAND = ["sweep", "nightly"]

COLUMN, LINE, MARGIN = 8.4, 18, 16  # of a character of 14 pixels
GROUND, TEXT, BAR = "#14181d", "#e4e8ec", "#2a313a"
INKS = {"1": ("font-weight", "bold"), "2": ("fill", "#9aa5b1"), "31": ("fill", "#ff7b72"),
        "32": ("fill", "#5bc878"), "33": ("fill", "#e0b04b")}


def run(program, folder):
    for name, data in RUNS.items():
        shutil.copytree(os.path.join(DATA, data), os.path.join(folder, "nightly", name))
    environment = dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm", COLUMNS="80")
    environment.pop("NO_COLOR", None)
    done = subprocess.run([program, *COMMAND, "--color", "always"], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(), done.returncode


def pieces(line):
    """(column, text, inks) of a line with the terminal's colours."""
    column, inks = 0, []
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b["):
            for code in piece[2:-1].split(";"):
                inks = [] if code in ("", "0") else inks + [INKS[code]]
        elif piece:
            yield column, piece, inks
            column += len(piece)


def draw(lines):
    width = int(80 * COLUMN + 2 * MARGIN)
    height = 28 + len(lines) * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" '
           f'font-size="14" fill="{TEXT}">',
           f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>',
           f'<path d="M0 28V8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v20z" fill="{BAR}"/>']
    out += [f'<circle cx="{18 + 18 * i}" cy="14" r="5" fill="#5c6570"/>' for i in range(3)]
    for number, line in enumerate(lines):
        y = 28 + MARGIN + 14 + number * LINE
        for column, text, inks in pieces(line):
            style = "".join(f' {name}="{value}"' for name, value in inks)
            # SVG draws several spaces as one: what they part has places of its own.
            for word in re.finditer(r"[^ ]+( [^ ]+)*", text):
                out.append(f'<text x="{MARGIN + (column + word.start()) * COLUMN:.1f}" y="{y}" textLength="'
                           f'{len(word[0]) * COLUMN:.1f}"{style}>{html.escape(word[0], quote=False)}</text>')
    return "\n".join(out + ["</svg>", ""])


def terminal(program):
    with tempfile.TemporaryDirectory() as folder:
        printed, code = run(program, folder)
    lines = ["$ gradcmp " + " ".join(COMMAND)] + printed.rstrip("\n").split("\n")
    return draw(lines + ["$ echo $?", str(code)])


def page(program, path):
    sys.path.insert(0, os.path.join(ROOT, "tests", "browser"))
    import chromium
    found = chromium.find()
    if found is None:
        print("no Chromium here: page.webp is left as it was")
        return
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.html")
        subprocess.run([program, "-q", "--html", report, "s_base", "bug_double_layer1"], cwd=DATA, check=False)
        browser = chromium.Browser(found)
        try:
            browser.call("Emulation.setDeviceMetricsOverride", width=1000, height=796, deviceScaleFactor=1.5,
                         mobile=False)
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            browser.media("light")
            browser.open(report)
            shot = browser.call("Page.captureScreenshot", format="webp", quality=70)
        finally:
            browser.close()
    with open(path, "wb") as file:
        file.write(base64.b64decode(shot["data"]))


def main():
    program = os.path.abspath(sys.argv[1])
    path = os.path.join(HERE, "terminal.svg")
    drawn = terminal(program)
    if "--check" in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            if file.read() != drawn:
                print("terminal.svg is not what the program prints (after a change that was meant: "
                      "examples/pictures/make.py PROGRAM)")
                return 1
        return 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(drawn)
    page(program, os.path.join(HERE, "page.webp"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
