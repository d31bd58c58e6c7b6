# REQUIRES: greenlet
# RUN: %kjit-python %s
"""debugpy, the debugger of VS Code and other editors, in kernels of the simulator: it stops at a breakpoint in each thread of the
block, shows the kernel's variables and the words of kjit.cuda, and steps to the next line. The test is the editor: it speaks the
Debug Adapter Protocol. Without debugpy it prints that nothing was tested."""
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

if importlib.util.find_spec("debugpy") is None:
    print("SKIPPED: debugpy is not installed")
    sys.exit(0)

PROGRAM = """\
import numpy as np
from kjit import cuda

@cuda.jit
def reverse(r, x):
    s = cuda.shared.array(3, np.float64)
    i = cuda.threadIdx.x
    s[i] = x[i] + 0.5
    cuda.syncthreads()
    r[i] = s[2 - i]

r = np.zeros(3)
reverse[1, 3](r, np.arange(3.0))
print(r)
"""
PATIENCE = 100  # seconds that the editor waits for an answer, a connection or the end of the program
STORE = PROGRAM.splitlines().index("    s[i] = x[i] + 0.5") + 1


class Editor:
    """An editor that is connected to a program."""

    def __init__(self, port, program):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
                break
            except ConnectionRefusedError:
                if time.monotonic() > end or program.poll() is not None:
                    raise
                time.sleep(0.1)
        self._file, self._number, self._events = connection.makefile("rwb"), 0, []

    def send(self, command, **arguments):
        """Sends a request and returns its number."""
        self._number += 1
        body = json.dumps({"seq": self._number, "type": "request", "command": command, "arguments": arguments}).encode()
        self._file.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._file.flush()
        return self._number

    def _read(self):
        header = b""
        while not header.endswith(b"\r\n\r\n"):
            line = self._file.readline()
            assert line, "the program has closed the connection"
            header += line
        return json.loads(self._file.read(int(re.search(rb"Content-Length: (\d+)", header)[1])))

    def ask(self, command, **arguments):
        """Sends a request and returns the body of its answer."""
        number = self.send(command, **arguments)
        while True:
            message = self._read()
            if message["type"] == "event":
                self._events.append(message)
            elif message["request_seq"] == number:
                assert message["success"], message
                return message.get("body")

    def wait(self, event):
        """Returns the body of the next event of this kind."""
        while True:
            for message in self._events:
                if message["event"] == event:
                    self._events.remove(message)
                    return message.get("body")
            message = self._read()
            if message["type"] == "event":
                self._events.append(message)

    def stopped(self):
        """Waits until the program stops. Returns the thread, the reason, the function and line, the variables, and the position of
        the thread of the grid."""
        body = self.wait("stopped")
        frame = self.ask("stackTrace", threadId=body["threadId"])["stackFrames"][0]
        scope = self.ask("scopes", frameId=frame["id"])["scopes"][0]["variablesReference"]
        variables = {v["name"]: v["value"] for v in self.ask("variables", variablesReference=scope)["variables"]}
        place = self.ask("evaluate", expression="[int(cuda.threadIdx.x), int(cuda.grid(1))]", frameId=frame["id"], context="watch")["result"]
        return body["threadId"], body["reason"], (frame["name"], frame["line"]), variables, place


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def debug(editor, path):
    """Stops at the breakpoint in each thread of the block and steps to the next line."""
    editor.ask("initialize", adapterID="test", linesStartAt1=True, columnsStartAt1=True, pathFormat="path")
    editor.send("attach", justMyCode=True)
    editor.wait("initialized")
    editor.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": STORE}])
    editor.ask("configurationDone")
    for number in range(3):
        thread, reason, where, variables, place = editor.stopped()
        assert (reason, where, place) == ("breakpoint", ("reverse", STORE), f"[{number}, {number}]"), (reason, where, place)
        assert variables["i"] in (f"np.int32({number})", str(number)) and variables["s"].count("nan") == 3 - number, variables
        editor.send("next", threadId=thread)
        thread, reason, where, variables, place = editor.stopped()
        assert (reason, where, place) == ("step", ("reverse", STORE + 1), f"[{number}, {number}]"), (reason, where, place)
        assert variables["s"].count("nan") == 2 - number, variables
        editor.send("continue", threadId=thread)
    editor.wait("terminated")
    editor.send("disconnect")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, port = os.path.join(folder, "program.py"), free_port()
        with open(path, "w") as file:
            file.write(PROGRAM)
        command = [sys.executable, "-Xfrozen_modules=off", "-m", "debugpy", "--listen", f"127.0.0.1:{port}", "--wait-for-client", path]
        with subprocess.Popen(command, env=os.environ | {"KJIT_DEVICE": "python"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
            try:
                debug(Editor(port, program), path)
                output = program.communicate(timeout=PATIENCE)[0]
            finally:
                program.kill()  # a program that still waits at its breakpoint would keep the test waiting
        assert program.returncode == 0 and "[2.5 1.5 0.5]" in output, output


main()
print("right")
