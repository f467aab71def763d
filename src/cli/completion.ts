import type { Command } from 'commander';
import { UsageFailure } from './terminal/failure.ts';
import { print } from './terminal/output.ts';

/** The completions after the words of a command, e.g. `hold list`. */
interface Completions {
  readonly words: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly { readonly name: string; readonly description: string }[];
}

const SHELLS = { bash, zsh, fish } as const;

export function completionCommand(program: Command, shell: string): void {
  if (!isShell(shell))
    throw new UsageFailure(
      `shell ${JSON.stringify(shell)} is not supported; use one of ${Object.keys(SHELLS).join(', ')}`,
    );
  print(SHELLS[shell](completionsOf(program)));
}

const isShell = (name: string): name is keyof typeof SHELLS => Object.hasOwn(SHELLS, name);

export function completionsOf(command: Command, words: readonly string[] = []): Completions[] {
  const { options } = command;
  const commands = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => command.commands.includes(each));
  return [
    {
      words: words.join(' '),
      commands: commands.map((each) => ({ name: each.name(), description: each.description() })),
      options: [...options, { long: '--help', description: 'display help for command' }].map((option) => ({
        name: option.long ?? '',
        description: option.description,
      })),
    },
    ...commands.flatMap((each) => completionsOf(each, [...words, each.name()])),
  ];
}

const names = ({ commands, options }: Completions) =>
  [...commands, ...options].map(({ name }) => name).join(' ');

/** Completes after the longest known command before the cursor. bash 3 of macOS has no associative arrays. */
function bash(all: readonly Completions[]): string {
  return `# fleetbook completion for bash: source <(fleetbook completion bash)
_fleetbook() {
  local words="" word next i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    next="\${words:+$words }$word"
    case "$next" in
${cases(all, () => 'words="$next"')}
      *) ;;
    esac
  done
  case "$words" in
${cases(all, (each) => `COMPREPLY=($(compgen -W "${names(each)}" -- "\${COMP_WORDS[COMP_CWORD]}"))`)}
  esac
}
complete -o default -F _fleetbook fleetbook
`;
}

const cases = (all: readonly Completions[], then: (each: Completions) => string) =>
  all.map((each) => `      "${each.words}") ${then(each)} ;;`).join('\n');

function zsh(all: readonly Completions[]): string {
  const described = ({ commands, options }: Completions) =>
    [...commands, ...options]
      .map(({ name, description }) => quoted(`${name}:${description.replaceAll(':', '\\:')}`))
      .join(' ');
  return `#compdef fleetbook
# fleetbook completion for zsh: source <(fleetbook completion zsh)
_fleetbook() {
  local cmds="" next i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    next="\${cmds:+$cmds }\${words[i]}"
    case "$next" in
${cases(all, () => 'cmds="$next"')}
    esac
  done
  case "$cmds" in
${cases(all, (each) => `found=(${described(each)})`)}
  esac
  _describe 'fleetbook' found || _files
}
compdef _fleetbook fleetbook
`;
}

function fish(all: readonly Completions[]): string {
  const lines = all.flatMap(({ words, commands, options }) => {
    const at = `-n ${quoted(`test "$(__fleetbook_words)" = "${words}"`)}`;
    return [
      ...commands.map(
        ({ name, description }) => `complete -c fleetbook -f ${at} -a ${name} -d ${quoted(description)}`,
      ),
      ...options.map(
        ({ name, description }) =>
          `complete -c fleetbook ${at} -l ${name.replace(/^--/, '')} -d ${quoted(description)}`,
      ),
    ];
  });
  const known = all.map(({ words }) => quoted(words)).join(' ');
  return `# fleetbook completion for fish: fleetbook completion fish | source
function __fleetbook_words
  set -l words ""
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$words $word")
    contains -- "$next" ${known}; and set words $next
  end
  echo $words
end
${lines.join('\n')}
`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
