"""After a run with this exit status: each report is absent, or whole and parsable; one that is there
after an interrupt says that it is not of all. All are there, or none is.

    whole.py EXIT_STATUS REPORT...
"""
import html.parser
import json
import os
import sys
import xml.etree.ElementTree

status, paths = int(sys.argv[1]), sys.argv[2:]
there = [path for path in paths if os.path.exists(path)]
if there not in ([], paths) or (status != 130 and not there):
    print("there are only", there)
for path in there:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    told = "not judged" in text
    if path.endswith(".json"):
        document = json.loads(text)
        told = document.get("unfinished", 0) > 0 and document["verdict"] == "error"
    elif path.endswith(".xml"):
        root = xml.etree.ElementTree.fromstring(text)
        told = told and int(root.get("errors")) > 0
    elif path.endswith(".html"):
        xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
        told = told and ": interrupted</title>" in text
    if told != (status == 130):
        print(f"{path}: exit {status}, told as interrupted: {told}")
