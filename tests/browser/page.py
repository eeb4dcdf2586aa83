#!/usr/bin/env python3
"""Open the HTML reports in a real browser: nothing is loaded, no error is logged, tables sort and
filter, dots tell their names, both themes and a phone's width work, hostile names stay names.

    page.py PROGRAM DATA [--shots FOLDER]
    page.py PROGRAM DATA --static         no browser: only that the pages are well-formed and small

Exits with 77 where there is no Chromium (which ctest shows as skipped)."""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import chromium

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from safetensors_file import write_gradients

SKIPPED = 77
PAGE_BYTES = 2 * 1000 * 1000
HOSTILE = ["<script>document.title='owned'</script>", "</script><script>owned=1</script>",
           "\"><img src=x onerror=owned=1>", "' onmouseover='owned=1", "</title><svg onload=owned=1>",
           "&lt;b&gt;", "{{7*7}}", "javascript:owned=1", "\u202eevil\u202c", "a\nb", "]]>--><!--",
           "http://example.invalid/x.png", "\u00e9\u4e2d", "%00%3Cscript%3E"]


class Failed(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


def model(count, hostile):
    names = [f"decoder.layers.{i // 20}.mlp.experts.{i % 20}.linear_fc1.weight" for i in range(count)]
    for i, text in enumerate(hostile):
        names[i * 7 % count] = f"decoder.layers.{i * 7 % count // 20}.mlp.{text}.weight"
    chance = random.Random(1)
    return {name: [chance.uniform(-1, 1) for _ in range(8)] for name in names}


def spoil(tensors, every):
    chance = random.Random(2)
    return {name: [x * (2.0 if every and i % every == 0 else 1.0 + chance.uniform(-1, 1) / 512)
                   for x in values]
            for i, (name, values) in enumerate(tensors.items())}


def make_pages(program, data, folder):
    """Return {name: path} of the pages under test."""
    def run(name, codes, *words):
        path = os.path.join(folder, name + ".html")
        done = subprocess.run([program, *words, "-q", "--html", path], cwd=data + "/megatron",
                              capture_output=True, text=True)
        expect(done.returncode in codes, f"{name}: exit {done.returncode}: {done.stderr}")
        pages[name] = path

    pages = {}
    base = model(2000, HOSTILE)
    for name, tensors in (("base", base), ("some", spoil(base, 50)), ("all", spoil(base, 1)),
                          ("none", spoil(base, 0))):
        write_gradients(os.path.join(folder, name + ".safetensors"), tensors)
    big = [os.path.join(folder, name + ".safetensors") for name in ("base", "some", "all", "none")]
    run("faulty", [1], "s_base", "bug_double_layer1")
    run("good", [0], "s_base", "tp2dp2")
    run("several", [2], "s_base", "tp2dp2", "missing", "bug_double_layer1", "bug_nan_fc2_2")
    run("big", [1], "--dtype", "bf16", big[0], big[1])
    run("big_all", [1], "--dtype", "bf16", big[0], big[2])
    run("big_several", [1], "--dtype", "bf16", *big)
    run("check", [0, 1, 2], "check", "s_base", "bug_nan_fc2_2", "missing")
    os.makedirs(os.path.join(folder, "runs"))
    for name in ("s_base", "tp2dp2", "fr_pp2dp2", "bug_double_layer1"):
        shutil.copytree(os.path.join(data, "megatron", name), os.path.join(folder, "runs", name))
    run("sweep", [1], "sweep", os.path.join(folder, "runs"))
    one = {"decoder.layers.0.mlp.linear_fc1.weight": [1.0, 2.0, 3.0]}
    long = {f"decoder.layers.{i}." + "a_very_long_module_name." * 8 + "weight": [1.0, 2.0, 3.0] for i in range(4)}
    long["decoder.layers.3." + "x" * 200] = [1.0, 2.0, 3.0]
    for name, tensors, factor in (("one", one, 1.0), ("long", long, 3.0)):
        paths = [os.path.join(folder, name + side) for side in ("_a.safetensors", "_b.safetensors")]
        write_gradients(paths[0], tensors)
        write_gradients(paths[1], {key: [values[0] * factor * 1.001] + values[1:] for key, values in tensors.items()})
        run(name, [0 if factor == 1.0 else 1], "--dtype", "bf16", *paths)
    run("bits", [1], "bits", "../resume/a.pt", "../resume/weight_all.pt")
    run("metrics", [1], "metrics", "../metrics/a", "../metrics/ulp")
    run("lint", [1], "lint", "../lint/launch.sh")
    traces = []
    for side, digest in (("a", "a"), ("b", "b")):
        traces.append(os.path.join(folder, "traces_" + side))
        os.mkdir(traces[-1])
        with open(os.path.join(traces[-1], "rank00000_iter000001.jsonl"), "w", encoding="ascii") as file:
            for i in range(4):
                out = {"shape": [2], "dtype": "float32", "digest": (digest if i > 1 else "c") * 16}
                json.dump({"schema_version": 1, "seq": i, "rank": 0, "iteration": 1, "kind": "op", "name": f"op{i}",
                           "payload": {"id": f"op{i}:1", "scope": f"layers.{i}", "phase": "forward", "microbatch": 0,
                                       "in": [], "out": [out]}}, file)
                file.write("\n")
    run("trace", [1], "trace", *traces)
    return pages


def rows(page, table="parameters"):
    return page.ask(f"""Array.from(document.getElementById('{table}').tBodies[0].rows)
        .filter(row => !row.hidden).map(row => Array.from(row.cells).map(cell => cell.textContent))""")


def check_alone(page, path):
    """What is true of every page: nothing loaded, nothing run, nothing wider than the window."""
    local = "file://" + urllib.parse.quote(path)
    strange = [url for url in page.requests if url != local and not url.startswith("data:")]
    expect(not strange, f"asked for {strange}")
    expect(not page.troubles, f"logged {page.troubles}")
    expect(page.ask("typeof owned") == "undefined", "a name was run as a script")
    expect(page.ask("document.scripts.length") == 1, "a name became a script")
    expect(page.ask("document.querySelectorAll('img:not([src^=\"data:\"])').length") == 0,
           "a name became a picture")
    expect(page.ask("document.title").startswith("gradcmp "), "the title is not ours")


def check_table(page, count):
    shown = rows(page)
    expect(len(shown) == count, f"{len(shown)} rows, expected {count}")
    head = page.ask("Array.from(document.getElementById('parameters').tHead.rows[0].cells)"
                    ".map(cell => cell.textContent)")
    ratio, name = head.index("/ bound"), head.index("parameter")
    number = lambda row: float(row[ratio].replace(",", "").replace("-", "nan"))
    page.click(f"#parameters th:nth-child({ratio + 1})")
    ratios = [number(row) for row in rows(page)]
    expect(ratios == sorted(ratios, reverse=True), "not sorted from the largest ratio")
    page.click(f"#parameters th:nth-child({ratio + 1})")
    ratios = [number(row) for row in rows(page)]
    expect(ratios == sorted(ratios), "not sorted from the smallest ratio")
    page.click(f"#parameters th:nth-child({name + 1})")
    names = [row[name] for row in rows(page)]
    by_layer = [int(text.split(".")[2]) for text in names if text.startswith("decoder.layers.")]
    expect(by_layer == sorted(by_layer), "layers in names are not sorted as numbers")


def check_filter(page):
    everything = len(rows(page))
    page.write(".tools[data-table=parameters] input", "layers.1. weight")
    some = rows(page)
    expect(0 < len(some) < everything, f"{len(some)} of {everything} rows are left")
    expect(all("layers.1." in " ".join(row) for row in some), "a row without the word is left")
    expect(page.ask("document.querySelector('.count').textContent") == f"{len(some)} of {everything}",
           "the count is wrong")
    page.write(".tools[data-table=parameters] input", "no such word")
    expect(rows(page) == [], "rows without the word are left")
    page.write(".tools[data-table=parameters] input", "")
    expect(len(rows(page)) == everything, "not all rows are back")
    page.ask("""(function (choice) { choice.value = 'fail';
        choice.dispatchEvent(new Event('change')); })(document.querySelector('.tools select'))""")
    failing = rows(page)
    expect(0 < len(failing) <= everything and all(row[0] == "fail" for row in failing),
           "the choice of a verdict does not hold")


def check_dots(page, count):
    dots = "document.querySelectorAll('svg.plot circle, svg.plot path.f').length"
    expect(page.ask(dots) == count, f"{page.ask(dots)} dots, expected {count}")
    page.point("svg.plot path.f:last-of-type")
    tip = page.ask("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    expect("of the bound" in tip and "fail" in tip, f"a dot tells nothing: {tip!r}")


def check_themes(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    page.media("light")
    light = page.ask(ground)
    page.media("dark")
    dark = page.ask(ground)
    expect(light != dark, "dark is like light")
    page.click("#theme")
    expect(page.ask(ground) == light, "the switch does not make it light")
    page.click("#theme")
    page.media("light")
    expect(page.ask(ground) == dark, "the switch does not make it dark")
    page.click("#theme")
    expect(page.ask(ground) == light, "the switch does not give the choice back")


# Cells of a table so narrow that words are broken into letters, and text that nobody can see.
NARROW = """Array.from(document.querySelectorAll('table td')).filter(cell => cell.textContent.length > 8 &&
    cell.clientWidth < 50 && cell.clientHeight > 40).length"""
PALE = """(function () {
    function light(color) { return color.match(/[0-9.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3; }
    var ground = light(getComputedStyle(document.body).backgroundColor);
    return Array.from(document.querySelectorAll('text, td, th, p, dd, li, figcaption, h1, h2, h3')).filter(function (node) {
        var style = getComputedStyle(node);
        return node.textContent && Math.abs(light(node.tagName === 'text' ? style.fill : style.color) - ground) < 60;
    }).length; })()"""


def check_phone(page):
    page.size(390, 844, mobile=True)
    width = page.ask("document.documentElement.scrollWidth")
    expect(width <= 390, f"{width} wide on a phone")
    expect(page.ask(NARROW) == 0, f"{page.ask(NARROW)} cells are broken into letters on a phone")
    page.size(1200, 800)
    expect(page.ask(NARROW) == 0, f"{page.ask(NARROW)} cells are broken into letters")
    for scheme in ("dark", "light"):
        page.media(scheme)
        expect(page.ask(PALE) == 0, f"{page.ask(PALE)} texts cannot be read in the {scheme} theme")


def check_static(path):
    """Without a browser's tolerance: well-formed, and small."""
    import html.parser
    import xml.etree.ElementTree
    with open(path, encoding="utf-8") as file:
        text = file.read()
    expect(len(text.encode()) < PAGE_BYTES, f"{len(text.encode())} bytes")
    parser = html.parser.HTMLParser(convert_charrefs=True)
    parser.feed(text)
    parser.close()
    xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1))


def look(page, name, path, shots):
    page.troubles.clear()
    page.requests.clear()
    page.size(1200, 800)
    page.media("light")
    page.open(path)
    check_alone(page, path)
    if name in ("faulty", "big"):
        check_dots(page, {"faulty": 27, "big": 2000}[name])
        check_table(page, {"faulty": 27, "big": 2000}[name])
        check_filter(page)
    if name == "several":
        page.click("#matrix th:nth-child(3)")
        words = [row[2] for row in rows(page, "matrix")]
        expect(words == sorted(words) and len(words) == 4, f"the matrix is not sorted: {words}")
    check_themes(page)
    check_phone(page)
    check_alone(page, path)
    if shots:
        take_shots(page, os.path.join(shots, name), path)


def take_shots(page, start, path):
    page.open(path)
    for scheme in ("light", "dark"):
        page.media(scheme)
        page.shot(f"{start}_{scheme}.png")
    page.size(390, 844, mobile=True)
    page.shot(f"{start}_phone.png")
    page.size(1000, 1400)
    page.media("light", "print")
    page.shot(f"{start}_print.png")
    page.media("light")


def main():
    program, data = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shots = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 and sys.argv[3] == "--shots" else None
    static = "--static" in sys.argv[3:]
    browser = None if static else chromium.find()
    if browser is None and not static:
        print("SKIPPED: no Chromium here (on Debian: apt-get install chromium)")
        return SKIPPED
    folder = tempfile.mkdtemp()
    failed = False
    page = None
    try:
        pages = make_pages(program, data, folder)
        page = None if static else chromium.Browser(browser)
        for name, path in pages.items():
            try:
                check_static(path)
                if page:
                    look(page, name, path, shots)
                print(f"ok {name} ({os.path.getsize(path)} bytes)")
            except Failed as trouble:
                print(f"FAILED {name}: {trouble}")
                failed = True
    finally:
        if page:
            page.close()
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
