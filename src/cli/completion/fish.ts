import type { CompletedFlag, CompletedValue, CompletionSpec } from './completion-spec.ts'

/**
 * Returns a completion script for fish 3.4 and later.
 *
 * @see https://fishshell.com/docs/current/completions.html
 */
export function fishScript({ topics, commands, globalFlags }: CompletionSpec): string {
  const isWithin = (path: string) => `__wb_within ${quoted(path)}`
  return `# Completes wb in fish: wb autocomplete fish >~/.config/fish/completions/wb.fish
function __wb_typed
    set -l words (commandline -opc)
    set -e words[1]
    string join ' ' -- $words
end
function __wb_at
    test "$(__wb_typed)" = "$argv"
end
function __wb_within
    set -l typed (__wb_typed)
    for path in $argv
        string match -q -- "$path *" "$typed " && return
    end
    return 1
end
function __wb_command
    __wb_within ${commands.map(({ path }) => quoted(path)).join(' ')}
end
complete -c wb -f
complete -c workbase -w wb
${[
  ...topics.flatMap(({ path, words }) =>
    words.map(({ word, summary }) => line(`__wb_at ${path}`.trim(), ['-a', word], summary)),
  ),
  ...commands.flatMap(({ path, flags, operand }) => [
    ...flags.map(flag => flagLine(isWithin(path), flag)),
    ...(operand === 'text' ? [] : [line(isWithin(path), operandWords(operand), '')]),
  ]),
  ...globalFlags.map(flag => flagLine('__wb_command', flag)),
  line('', ['-l', 'help'], 'show help'),
].join('\n')}
`
}

function flagLine(condition: string, { names, summary, value }: CompletedFlag): string {
  const nameWords = names.flatMap(name =>
    name.startsWith('--') ? ['-l', name.slice(2)] : ['-s', name.slice(1)],
  )
  return line(condition, [...nameWords, ...valueWords(value)], summary)
}

function valueWords(value: CompletedValue | undefined): string[] {
  if (value === undefined) return []
  if (value === 'text') return ['-x']
  if (value === 'file') return ['-r', '-F']
  return ['-x', '-a', quoted(value === 'folder' ? '(__fish_complete_directories)' : value.join(' '))]
}

function operandWords(operand: CompletedValue): string[] {
  return typeof operand === 'string' ? ['-F'] : ['-a', quoted(operand.join(' '))]
}

function line(condition: string, words: readonly string[], summary: string): string {
  const when = condition === '' ? [] : ['-n', quoted(condition)]
  const description = summary === '' ? [] : ['-d', quoted(summary)]
  return ['complete', '-c', 'wb', ...when, ...words, ...description].join(' ')
}

/** Quotes a string for fish. */
function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
