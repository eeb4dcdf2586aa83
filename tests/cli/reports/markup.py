"""What the XML and HTML reports hold, as Python's own parsers read them.

    markup.py junit FILE        suites, cases and what became of them
    markup.py html FILE         heading, verdict, tables by rows, dots, faults
    markup.py text FILE WORD... fail where a word stands in the page as anything but text
"""
import html.parser
import sys
import xml.etree.ElementTree


def junit(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    cases = root.findall("./testsuite/testcase")
    for element in [root] + list(root):
        own = element.findall("testcase") if element.tag == "testsuite" else cases
        for attribute, child in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(attribute)) == sum(case.find(child) is not None for case in own)
        assert int(element.get("tests")) == len(own)
    for suite in root:
        print(suite.get("name"), *(suite.get(key) for key in ("tests", "failures", "errors", "skipped")))
        for own in suite.findall("properties/property"):
            print(" ", own.get("name"), own.get("value"))
        for case in suite.findall("testcase"):
            assert case.get("name") and case.get("classname") is not None
            for child in case:
                print(" ", case.get("name"), child.tag, child.get("type"), child.get("message") or child.text)


class Page(html.parser.HTMLParser):
    VOID = {"meta", "link", "input", "img", "br"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.words, self.counts, self.rows, self.tags = [], {}, {}, {}, []
        self.table = None

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        assert len(own) == len(attributes), "an attribute stands twice"
        self.tags.append((tag, own))
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name in (own.get("class") or "").split():
            self.counts["." + name] = self.counts.get("." + name, 0) + 1
        if "class" in own:
            shape = f"{tag}.{own['class']}"
            self.counts[shape] = self.counts.get(shape, 0) + 1
        if tag == "table":
            self.table = own.get("id") or own.get("class")
        if tag == "tr":
            self.rows[self.table] = self.rows.get(self.table, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open:
            place = "/".join(self.open[-2:]) if self.open[-1] == "title" else self.open[-1]
            self.words[place] = self.words.get(place, "") + data


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == [], page.open
    xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
    for tag, own in page.tags:
        for name in ("src", "href"):
            value = own.get(name)
            assert value is None or value.startswith(("data:", "#")), value
        assert not any(name.startswith("on") for name in own), own
    return page


def show(path):
    page = read(path)
    print("title:", page.words["head/title"])
    for table, count in page.rows.items():
        print(f"{table}: {count} rows")
    print("discs", page.counts.get("circle.p", 0), "diamonds", page.counts.get("path.f", 0), "rings",
          page.counts.get("circle.u", 0), "faults", page.counts.get(".fault", 0))
    print("command:", page.words.get("pre"))


def text(path, words):
    page = read(path)
    assert page.counts["script"] == 1
    whole = " ".join(page.words.values())
    for word in words:
        assert word in whole, word


if sys.argv[1] == "junit":
    junit(sys.argv[2])
elif sys.argv[1] == "html":
    show(sys.argv[2])
else:
    text(sys.argv[2], sys.argv[3:])
