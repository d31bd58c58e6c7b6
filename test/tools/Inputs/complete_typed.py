"""complete_typed.py COMPLETION: prints the command line that an interactive bash makes of each input line when the Tab
key follows it."""
import os
import pty
import re
import select
import sys

script = sys.argv[1]
process, terminal = pty.fork()
if process == 0:
    os.environ.update(PS1="", TERM="dumb", INPUTRC="/dev/null", COLUMNS="1000")
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])


def read_until(marker):
    text = ""
    while not re.search(marker, text):
        if not select.select([terminal], [], [], 60)[0]:
            sys.exit(f"no answer within a minute: {text!r}")
        text += os.read(terminal, 1 << 16).decode(errors="replace")
    return re.search(marker, text)


def send(text):
    os.write(terminal, text.encode())


send(f"bind 'set bell-style none' 'set show-all-if-ambiguous off'; source {script}; stty -echo; show() {{ printf 'WORDS'; printf '<%s>' \"$@\"; echo END; }}; show ready\n")
read_until("WORDS<ready>END")
for line in sys.stdin:
    send(line.rstrip("\n") + "\t" + "\x01show \x05\n")  # Ctrl-A, the beginning of the line; Ctrl-E, its end
    print(f"{line.rstrip()}: {read_until('WORDS(.*?)END').group(1)}")
send("exit\n")
os.waitpid(process, 0)
