"""Runs a program on a pseudo-terminal of 24 lines and types into it.

argv: a JSON object {"command": [...], "columns": its width, "steps": [[what to wait for, what to type], ...], "stdout": file or null}.
Where there is null to type, the terminal is closed, as it is when a connection is lost.
Prints a JSON object {"code": exit code, "seen": all that the terminal showed}.
"""

import fcntl
import json
import os
import select
import struct
import sys
import termios

request = json.loads(sys.argv[1])
parent, child = os.openpty()
fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, request["columns"], 0, 0))

pid = os.fork()
if pid == 0:
    os.close(parent)
    os.setsid()
    fcntl.ioctl(child, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(child, number)
    if request["stdout"] is not None:
        os.dup2(os.open(request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    os.execv(request["command"][0], request["command"])
os.close(child)

seen = b""
step_from = 0
steps = list(request["steps"])
while True:
    ready, _, _ = select.select([parent], [], [], 40)
    if not ready:
        os.kill(pid, 9)
        break
    try:
        read = os.read(parent, 65536)
    except OSError:
        read = b""
    if not read:
        break
    seen += read
    is_lost = False
    while steps and not is_lost and steps[0][0].encode() in seen[step_from:]:
        step_from = len(seen)
        typed = steps.pop(0)[1]
        is_lost = typed is None
        if not is_lost:
            os.write(parent, typed.encode())
    if is_lost:
        os.close(parent)
        break

_, status = os.waitpid(pid, 0)
code = os.waitstatus_to_exitcode(status)
print(json.dumps({"code": code, "seen": seen.decode("utf-8", "replace"), "left": steps}))
