# SPDX-License-Identifier: GPL-2.0
"""Sends one QMP command: qmp.py SOCKET COMMAND [JSON-ARGUMENTS]. Prints what it returns; with
--until EVENT waits for that event after it."""
import json
import socket
import sys

args = sys.argv[1:]
until = args.pop() if "--until" in args and args.pop(-2) else None
qmp = socket.socket(socket.AF_UNIX)
qmp.settimeout(60)
qmp.connect(args[0])
lines = qmp.makefile("rw")
lines.readline()


def ask(command):
    lines.write(json.dumps(command) + "\n")
    lines.flush()
    while "return" not in (answer := json.loads(lines.readline())):
        if "error" in answer:
            sys.exit(answer["error"]["desc"])
    return answer["return"]


ask({"execute": "qmp_capabilities"})
arguments = json.loads(args[2]) if len(args) > 2 else {}
print(json.dumps(ask({"execute": args[1], "arguments": arguments})))
while until and json.loads(lines.readline()).get("event") != until:
    pass
