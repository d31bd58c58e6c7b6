"""complete.py COMPLETION TOOL: prints bash's completions, by the file COMPLETION, for the last word of a command line.
Each input line is a command line with its words separated by blanks; `=` is a separate word, as in bash."""
import subprocess
import sys

script, tool = sys.argv[1:]
for line in sys.stdin:
    words = [tool] + line.rstrip("\n").split(" ")
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    program = f"compopt() {{ :; }}; source {script}; COMP_WORDS=({quoted}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); $(complete -p {tool} | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo \"${{COMPREPLY[*]}}\""
    done = subprocess.run(["bash", "--norc", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{line.rstrip()}: {done.stdout.rstrip()}")
