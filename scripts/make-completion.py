#!/usr/bin/env python3
"""make-completion.py FOLDER TOOL...: writes the completion files of bash and zsh for each TOOL, the path of a program:
FOLDER/bash/NAME and FOLDER/zsh/_NAME. Options, values and descriptions come from `TOOL --help`, which prints the program's table
of options."""
import os
import re
import subprocess
import sys


class Option:
    """short: "d" or None; value: what --help calls it, "cpu|cuda[:N]|auto", or None; is_optional: the value may be left out."""

    def __init__(self, short, name, value, is_optional, meaning):
        self.short, self.name, self.value, self.is_optional, self.meaning = short, name, value, is_optional, meaning

    def words(self, stages):
        """Returns the possible values; an empty list means any text."""
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

    def is_argument(self):
        """Returns whether the option takes NAME=VALUE with an array or a scalar as VALUE."""
        return bool(re.fullmatch(r"NAME=(VALUE|EXPECTED)", self.value or ""))

    def is_named_file(self):
        return bool(re.fullmatch(r"NAME=FILE\S*", self.value or ""))


class Tool:
    """Returns the contents of `TOOL --help`: the options, their stages, the kinds of new arrays (`zeros:`), and the commands."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        text = subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"ARGP_HELP_FMT": ""}).stdout
        self.options = read_options(text)
        self.stages = read_stages(text, self.options)
        self.generators = re.findall(r"^  ([a-z]+:)(?:TYPE|NAME)\[", text, re.M)
        listed = re.search(r"^COMMAND is one of\n((?:.+\n)*)", text, re.M)
        self.commands = list(dict.fromkeys(re.findall(r"^  ([a-z]+)\b", listed.group(1), re.M))) if listed else []
        if not self.options:
            sys.exit(f"make-completion: {self.name} --help lists no option")


def read_options(text):
    options = []
    for line in text.splitlines():
        if line.startswith("Mandatory or optional"):  # the following lines are not a list of options
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
    listed = re.search(r"^STAGE is one of\n((?:  .*\n|\w+\n)*)", text, re.M)
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


ENDINGS = "npy npz csv tsv png pgm ppm"

# bash splits `--arg x=@t.csv:n` at `=`, `@` and `:`, and replaces only the last part. The script therefore takes the whole word
# from the line, and removes the text before the last part from the completions.
BASH_ARGUMENT = """
# Completes NAME=VALUE or NAME=FILE: files after `=` or `=@`, columns after `@FILE.csv:`, and the kinds of new arrays.
FUNCTION_named()
{
  local word=$1 endings=$2 part=$3 value answers=() answer
  [[ $word == *=* ]] || return
  value=${word#*=}
  if [[ $value =~ ^@(.*\\.(csv|tsv)):(.*)$ ]]; then
    local file=${BASH_REMATCH[1]} start=${BASH_REMATCH[3]} head=
    [[ -f $file ]] && IFS= read -r head < "$file"
    head=${head#$'\\xef\\xbb\\xbf'}
    while IFS= read -r answer; do
      [[ -n $answer && $answer == "$start"* ]] && answers+=("@$file:$(printf %q "$answer")")
    done < <(tr -d '"\\r' <<< "$head" | tr ',;\\t' '\\n\\n\\n')
  elif [[ $value == @* || -n $endings ]]; then
    compopt -o filenames
    local at=${value%%[!@]*}
    for answer in $(compgen -d -- "${value#@}") $(compgen -f -- "${value#@}"); do
      if [[ -d $answer ]]; then
        answers+=("$at$answer/")
        compopt -o nospace
      elif [[ $answer =~ ${endings:-\\.(ENDINGS)$} ]]; then
        answers+=("$at$answer")
      fi
    done
  else
    compopt -o nospace
    answers=($(compgen -W "@ GENERATORS" -- "$value"))
  fi
  # the part that Readline replaces has the `@` before it
  [[ $value == *"@$part" ]] && part=@$part
  local before=${value%"$part"}
  for answer in "${answers[@]}"; do COMPREPLY+=("${answer#"$before"}"); done
}
"""


def bash_argument(tool, function):
    if not any(option.is_argument() or option.is_named_file() for option in tool.options):
        return ""
    text = BASH_ARGUMENT.replace("FUNCTION", function).replace("ENDINGS", ENDINGS.replace(" ", "|"))
    return text.replace("GENERATORS", " ".join(tool.generators))


def bash_named_cases(options):
    for option in options:
        if option.is_argument() or option.is_named_file():
            endings = "" if option.is_argument() else "." if option.name == "extern" else rf"\.({ENDINGS.replace(' ', '|')})$"
            yield f"    {names_of(option)}) {{FUNCTION}}_named \"$word\" '{endings}' \"$part\"; return ;;"


def make_bash(tool):
    options, stages = tool.options, tool.stages
    function = "_" + tool.name.replace("-", "_")
    named = "\n".join(bash_named_cases(options)).replace("{FUNCTION}", function)
    long = [f"--{option.name}{'=' if option.value and not option.is_optional else ''}" for option in options]
    commands = ""
    if tool.commands:
        commands = f"""
  local i has_command=
  for ((i = 1; i < COMP_CWORD; i++)); do [[ " {" ".join(tool.commands)} " == *" ${{COMP_WORDS[i]}} "* ]] && has_command=yes; done
  if [[ -z $has_command ]]; then COMPREPLY=($(compgen -W "{" ".join(tool.commands)}" -- "$current")); return; fi"""
    files = "$(compgen -f -X '!*.kir' -- \"$current\")" if not tool.commands else "$(compgen -f -- \"$current\")"
    named_part = f"""
  # the word of the shell, and the option before it
  local word=${{COMP_LINE:0:COMP_POINT}} part=$current
  word=${{word##*[[:space:]]}}
  local line=${{COMP_LINE:0:COMP_POINT-${{#word}}}}
  line=${{line%"${{line##*[![:space:]]}}"}}
  local last=${{line##*[[:space:]]}}
  if [[ $word == --*=* ]]; then last=${{word%%=*}} word=${{word#*=}}; fi
  while [[ -n $part && $COMP_WORDBREAKS == *"${{part:0:1}}"* ]]; do part=${{part:1}}; done
  case $last in
{named}
  esac"""
    return f"""# bash completion of {tool.name}, made by scripts/make-completion.py.{bash_argument(tool, function)}
{function}()
{{
  local current=${{COMP_WORDS[COMP_CWORD]}} before= option=
  ((COMP_CWORD > 0)) && before=${{COMP_WORDS[COMP_CWORD - 1]}}
  COMPREPLY=(){named_part if named else ""}
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
  fi{commands}
  compopt -o filenames
  COMPREPLY=($(compgen -d -- "$current") {files})
}}
complete -F {function} {tool.name}
"""


# ---- zsh ----


def zsh_text(text):
    return re.sub(r"([\[\]:'\\])", r"\\\1", text).replace("\\'", "'\\''")


ZSH_ARGUMENT = """
# Completes NAME=VALUE or NAME=FILE: files after `=` or `=@`, columns after `@FILE.csv:`, and the kinds of new arrays.
FUNCTION_named() {
  local file
  if [[ $1 == value ]] && compset -P '*=@'; then
    if [[ $PREFIX == *.(csv|tsv):* ]]; then
      file=${PREFIX%%.(csv|tsv):*}
      file=$file.${${PREFIX#$file.}%%:*}
      compset -P '*.(csv|tsv):'
      local -a columns
      columns=(${(f)"$(head -n 1 -- $file 2> /dev/null | tr -d '"\\r' | tr ',;\\t' '\\n\\n\\n')"})
      columns[1]=${columns[1]#$'\\xef\\xbb\\xbf'}
      compadd -- $columns
    else
      _files -g '*.(ENDINGS)'
    fi
  elif compset -P '*='; then
    if [[ $1 == any ]]; then _files; elif [[ $1 == file ]]; then _files -g '*.(ENDINGS)'; else compadd -S '' -- @ GENERATORS; fi
  else
    _message 'NAME='
  fi
}
"""


def zsh_action(option, stages, function):
    words = option.words(stages)
    if option.is_argument():
        return f" {function}_named value"
    if option.is_named_file():
        return f" {function}_named {'any' if option.name == 'extern' else 'file'}"
    return f"({' '.join(words)})" if words else "_files -/" if option.is_folder() else "_files" if option.is_file() else " "


def zsh_option(option, stages, function):
    meaning, value = zsh_text(first_sentence(option.meaning)), ""
    if option.value:
        action = zsh_action(option, stages, function).replace("'", "'\\''")
        value = f":{':' if option.is_optional else ''}{zsh_text(option.value)}:{action}"
    long = f"--{option.name}{'=-' if option.is_optional else '=' if option.value else ''}"
    if not option.short:
        return f"  '*{long}[{meaning}]{value}'"
    return f"  '*'{{-{option.short}{'+' if option.value else ''},{long}}}'[{meaning}]{value}'"


def make_zsh(tool):
    function = "_" + tool.name.replace("-", "_")
    rows = " \\\n".join(zsh_option(option, tool.stages, function).replace("-?,", "-\\?,") for option in tool.options)
    named = any(option.is_argument() or option.is_named_file() for option in tool.options)
    argument = ZSH_ARGUMENT.replace("FUNCTION", function).replace("ENDINGS", ENDINGS.replace(" ", "|")).replace("GENERATORS", " ".join(tool.generators)) if named else ""
    operands = f"'1:COMMAND:({' '.join(tool.commands)})' '*:FILE:_files'" if tool.commands else "'*:FILE.kir:_files -g \"*.kir\"'"
    return f"#compdef {tool.name}\n# zsh completion of {tool.name}, made by scripts/make-completion.py.{argument}\n_arguments -s \\\n{rows} \\\n  {operands}\n"


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def main():
    folder, tools = sys.argv[1], sys.argv[2:]
    for path in tools:
        tool = Tool(path)
        write(os.path.join(folder, "bash"), tool.name, make_bash(tool))
        write(os.path.join(folder, "zsh"), "_" + tool.name, make_zsh(tool))


if __name__ == "__main__":
    main()
