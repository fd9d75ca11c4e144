"""Writes the manual page and the completions for bash, both from what --help prints:

manual.py PROGRAM VERSION PAGE COMPLETIONS
"""
import os
import re
import subprocess
import sys

PROGRAM, VERSION, PAGE, COMPLETIONS = os.path.abspath(sys.argv[1]), *sys.argv[2:]
ONE_LINE_EACH = dict(os.environ, LC_ALL='C', ARGP_HELP_FMT='rmargin=10000')
OPTION = re.compile(r' +(?:(-.), )?(--[a-z0-9-]+)(?:=([A-Z=]+))? +(.*)')


def help_of(*command):
    return subprocess.run([PROGRAM, *command, '--help'], env=ONE_LINE_EACH, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()


def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\\&' + text if text[:1] in ('.', "'") else text


def bold(text):
    return f'\\fB{roff(text)}\\fR'


def page_line(line):
    option = OPTION.fullmatch(line)
    usage = re.fullmatch(r'(?:Usage|  or): +(.*)', line)
    if option:
        short, name, value, text = option.groups()
        names = (bold(short) + ', ' if short else '') + bold(name)
        return '.TP\n' + names + (f'=\\fI{value}\\fR' if value else '') + '\n' + roff(text)
    if usage:
        return bold(usage[1]) + '\n.br'
    heading = re.fullmatch(r' (\S.*):', line)
    return bold(heading[1]) if heading else roff(line) or '.PP'


def page(summary, commands):
    lines = [f'.TH SOFTBACK 1 "" "softback {VERSION}" "User Commands"', '.SH NAME',
             f'softback \\- {roff(summary[0].lower() + summary[1:].rstrip("."))}', '.SH SYNOPSIS',
             f'{bold("softback")} \\fICOMMAND\\fR [\\fIOPTION\\fR...]', '.SH COMMANDS']
    for name, text in commands:
        lines += ['.TP', bold(name), roff(text)]
    for name, _ in commands:
        lines += [f'.SH "softback {name}"', *map(page_line, help_of(name))]
    return re.sub(r'\.PP\n(?=\.[TS])', '', '\n'.join(lines) + '\n') # no paragraph is empty


def completions(commands):
    cases = ''
    for name, _ in commands:
        options = [match[2] for match in map(OPTION.fullmatch, help_of(name)) if match]
        cases += f"        {name}:-*) words='{' '.join(options)}' ;;\n"
    names = ' '.join(name for name, _ in commands)
    return f'''_softback() {{
    local words='' word=${{COMP_WORDS[COMP_CWORD]}}
    if [ "$COMP_CWORD" = 1 ]; then
        words='{names} --help --version'
    else
        case ${{COMP_WORDS[1]}}:$word in
{cases}        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _softback softback
'''


def main():
    lines = help_of()
    commands = [match.groups() for match in (re.fullmatch(r'  ([a-z]+) +(.*)', line) for line in lines) if match]
    for path, text in (PAGE, page(lines[1], commands)), (COMPLETIONS, completions(commands)):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)


main()
