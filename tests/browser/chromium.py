"""A headless Chromium driven over its debugging pipe, with Python's standard library alone."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_SECONDS = 120


def find():
    """Return the path of a Chromium, or None."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One page. Keeps what a user would never see: errors of scripts, messages of the console, and
    every address that was asked for."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp()
        to_browser, ours_to = os.pipe()
        ours_from, from_browser = os.pipe()
        command = [program, "--headless=new", "--remote-debugging-pipe", "--disable-gpu",
                   "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
                   "--user-data-dir=" + self.folder]
        if os.getuid() == 0:
            command.append("--no-sandbox")  # it refuses to run as root otherwise

        def place():
            # Descriptors 3 and 4, whatever numbers the pipes have.
            high = [os.dup2(to_browser, 90), os.dup2(from_browser, 91)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            os.close(high[0])
            os.close(high[1])

        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=place,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.write_fd, self.read_fd = ours_to, ours_from
        self.buffer = b""
        self.number = 0
        self.session = None
        self.troubles, self.requests, self.events = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _receive(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.read_fd, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has gone")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def _note(self, message):
        method, detail = message.get("method"), message.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.troubles.append(json.dumps(detail["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and detail["entry"]["level"] in ("error", "warning"):
            self.troubles.append(detail["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.troubles.append("console: " + json.dumps(detail["args"])[:500])
        elif method == "Page.javascriptDialogOpening":
            self.troubles.append("dialog: " + detail["message"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(detail["request"]["url"])

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events:
            self._note(self._receive())

    def ask(self, expression):
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)

    def media(self, scheme, kind=""):
        self.call("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, selector):
        """Click at the middle of an element, as a mouse does."""
        self.ask(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.ask(f"""(function () {{
            var box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
            return {{x: box.x + box.width / 2, y: box.y + box.height / 2}}; }})()""")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box["x"], y=box["y"],
                      button="none" if kind == "mouseMoved" else "left", clickCount=1)

    def point(self, selector):
        self.ask(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.ask(f"""(function () {{
            var box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
            return {{x: box.x + box.width / 2, y: box.y + box.height / 2}}; }})()""")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["x"], y=box["y"])

    def write(self, selector, text):
        """Write into a field in place of what is there."""
        self.ask(f"(function (field) {{ field.focus(); field.select(); }})"
                 f"(document.querySelector({json.dumps(selector)}))")
        if text:
            self.call("Input.insertText", text=text)
        else:
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key="Delete", code="Delete",
                          windowsVirtualKeyCode=46)

    def shot(self, path, whole=False):
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)
        shutil.rmtree(self.folder, ignore_errors=True)
