#!/usr/bin/env python3
"""make-completion.py FOLDER TOOL...: what bash and zsh need to complete the options of each TOOL, a program that is built: FOLDER/bash/NAME and FOLDER/zsh/_NAME. Options, their values and
what they mean come from `TOOL --help`, which prints the table that the program reads them by."""
import os
import re
import subprocess
import sys


class Option:
    """short: "d" or None; value: what --help calls it, "cpu|cuda[:N]|auto", or None; is_optional: the value may be left out."""

    def __init__(self, short, name, value, is_optional, meaning):
        self.short, self.name, self.value, self.is_optional, self.meaning = short, name, value, is_optional, meaning

    def words(self, stages):
        """The values that there are; none: any text."""
        if self.value and self.value.startswith("STAGE"):
            return stages
        alternatives = (self.value or "").split("|")
        if len(alternatives) < 2:
            return []
        return [word for word in (re.sub(r"\[.*?\]", "", a) for a in alternatives) if word == word.lower()]

    def is_file(self):
        return bool(re.fullmatch(r"FILE\S*|PATH", self.value or ""))

    def is_folder(self):
        return self.value == "DIR"


def read_options(text):
    options = []
    for line in text.splitlines():
        if line.startswith("Mandatory or optional"):  # what follows is no list of options
            break
        found = re.match(r"(?: {6}|  -(\S), )--([a-z-]+)(?:(\[?)=(\S+?)\]?)?(?:\s{1,}(\S.*))?$", line)
        if found:
            short, name, optional, value, meaning = found.groups()
            if value and value.count("[") > value.count("]"):
                value += "]"
            options.append(Option(short, name, value, bool(optional), meaning or ""))
        elif options and re.match(r"\s{25,}\S", line):
            options[-1].meaning += " " + line.strip()
    return options


def read_stages(text, options):
    listed = re.search(r"^STAGE is one of\n((?:  .*\n|target\n)*)", text, re.M)
    if listed:
        return re.findall(r"^  ([a-z-]+)  ", listed.group(1), re.M)
    told = [option.meaning for option in options if (option.value or "").startswith("STAGE")]
    return re.findall(r"[a-z-]+", told[0].split(":", 1)[1].replace(" or ", ", ")) if told else []


def first_sentence(text):
    return re.split(r"[;:(]|\.(?: |$)", text)[0].strip()


# ---- bash ----


def names_of(option):
    return f"--{option.name}|-{option.short}" if option.short else f"--{option.name}"


def bash_cases(options, stages):
    for option in options:
        words = option.words(stages)
        if words:
            yield f'    {names_of(option)}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current")); return ;;'
        elif option.is_folder():
            yield f'    {names_of(option)}) compopt -o filenames; COMPREPLY=($(compgen -d -- "$current")); return ;;'
        elif option.is_file():
            yield f'    {names_of(option)}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;'
        elif option.value and not option.is_optional:
            yield f"    {names_of(option)}) return ;;"


def make_bash(tool, options, stages):
    function = "_" + tool.replace("-", "_")
    long = [f"--{option.name}{'=' if option.value and not option.is_optional else ''}" for option in options]
    return f"""# bash completion of {tool}, made by scripts/make-completion.py.
{function}()
{{
  local current=${{COMP_WORDS[COMP_CWORD]}} before= option=
  ((COMP_CWORD > 0)) && before=${{COMP_WORDS[COMP_CWORD - 1]}}
  COMPREPLY=()
  # `--name=value` is three words
  if [[ $current == "=" ]]; then option=$before current=
  elif [[ $before == "=" ]] && ((COMP_CWORD > 1)); then option=${{COMP_WORDS[COMP_CWORD - 2]}}
  elif [[ $before == -* ]]; then option=$before
  fi
  case $option in
{chr(10).join(bash_cases(options, stages))}
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "{" ".join(long)}" -- "$current"))
    [[ ${{COMPREPLY[0]-}} == *= ]] && compopt -o nospace
    return
  fi
  compopt -o filenames
  COMPREPLY=($(compgen -d -- "$current") $(compgen -f -X '!*.kir' -- "$current"))
}}
complete -F {function} {tool}
"""


# ---- zsh ----


def zsh_text(text):
    return re.sub(r"([\[\]:'\\])", r"\\\1", text).replace("\\'", "'\\''")


def zsh_action(option, stages):
    words = option.words(stages)
    return f"({' '.join(words)})" if words else "_files -/" if option.is_folder() else "_files" if option.is_file() else " "


def zsh_option(option, stages):
    meaning, value = zsh_text(first_sentence(option.meaning)), ""
    if option.value:
        value = f":{':' if option.is_optional else ''}{zsh_text(option.value)}:{zsh_action(option, stages)}"
    long = f"--{option.name}{'=-' if option.is_optional else '=' if option.value else ''}"
    if not option.short:
        return f"  '*{long}[{meaning}]{value}'"
    return f"  '*'{{-{option.short}{'+' if option.value else ''},{long}}}'[{meaning}]{value}'"


def make_zsh(tool, options, stages):
    rows = " \\\n".join(zsh_option(option, stages).replace("-?,", "-\\?,") for option in options)
    return f"#compdef {tool}\n# zsh completion of {tool}, made by scripts/make-completion.py.\n_arguments -s \\\n{rows} \\\n  '*:FILE.kir:_files -g \"*.kir\"'\n"


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def main():
    folder, tools = sys.argv[1], sys.argv[2:]
    for path in tools:
        tool = os.path.basename(path)
        text = subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"ARGP_HELP_FMT": ""}).stdout
        options = read_options(text)
        stages = read_stages(text, options)
        if not options:
            sys.exit(f"make-completion: {tool} --help lists no option")
        write(os.path.join(folder, "bash"), tool, make_bash(tool, options, stages))
        write(os.path.join(folder, "zsh"), "_" + tool, make_zsh(tool, options, stages))


if __name__ == "__main__":
    main()
