"""terminal.py TEXT ANSWER… -- COMMAND ARGUMENT…: runs a command at a terminal of its own, types
an answer at each question, and succeeds if the terminal has shown TEXT."""
import os, pty, re, select, sys, time

split = sys.argv.index("--")
want, answers, command = sys.argv[1], sys.argv[2:split], sys.argv[split + 1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown, read = b"", 0
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data
    if answers and re.search(rb"(?:n\]o: |\n> )$", shown[read:].replace(b"\r", b"")):
        time.sleep(0.2)  # what is typed before the question is complete is thrown away
        read = len(shown)
        os.write(terminal, answers.pop(0).encode() + b"\n")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if status != 0 or want.encode() not in shown:
    sys.exit(shown.decode(errors="replace"))
