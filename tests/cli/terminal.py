"""Run a command with standard output or standard error on a terminal of $TERMINAL_COLUMNS columns
(80 if unset), and print what the terminal gets.

    terminal.py stdout|stderr COMMAND...

The other stream goes to /dev/null; the exit code is the command's.
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

COLUMNS = int(os.environ.get("TERMINAL_COLUMNS", "80"))
controller, terminal = pty.openpty()
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
attributes = termios.tcgetattr(terminal)
attributes[1] &= ~termios.OPOST  # bytes as they are written
termios.tcsetattr(terminal, termios.TCSANOW, attributes)
streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, sys.argv[1]: terminal}
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, **streams)
os.close(terminal)
while True:
    try:
        piece = os.read(controller, 65536)
    except OSError:  # Linux: the other end was closed
        break
    if not piece:
        break
    sys.stdout.buffer.write(piece)
sys.stdout.flush()
sys.exit(process.wait())
