import type { CompletionFlag, CompletionSpec, CompletionValue } from './completion-spec.ts'

/**
 * Returns a completion script for fish 3.4 and later.
 *
 * @see https://fishshell.com/docs/current/completions.html
 */
export function fishScript({ topics, commands, globalFlags }: CompletionSpec): string {
  const withinCondition = (path: string) => `__wb_within ${quote(path)}`
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
    __wb_within ${commands.map(({ path }) => quote(path)).join(' ')}
end
complete -c wb -f
complete -c workbase -w wb
${[
  ...topics.flatMap(({ path, words }) =>
    words.map(({ word, summary }) => completeLine(`__wb_at ${path}`.trim(), ['-a', word], summary)),
  ),
  ...commands.flatMap(({ path, flags, operand }) => [
    ...flags.map(flag => flagLine(withinCondition(path), flag)),
    ...(operand === 'text' ? [] : [completeLine(withinCondition(path), operandWords(operand), '')]),
  ]),
  ...globalFlags.map(flag => flagLine('__wb_command', flag)),
  completeLine('', ['-l', 'help'], 'show help'),
].join('\n')}
`
}

function flagLine(condition: string, { names, summary, value }: CompletionFlag): string {
  const nameWords = names.flatMap(name =>
    name.startsWith('--') ? ['-l', name.slice(2)] : ['-s', name.slice(1)],
  )
  return completeLine(condition, [...nameWords, ...valueWords(value)], summary)
}

function valueWords(value: CompletionValue | undefined): string[] {
  if (value === undefined) return []
  if (value === 'text') return ['-x']
  if (value === 'file') return ['-r', '-F']
  return ['-x', '-a', quote(value === 'folder' ? '(__fish_complete_directories)' : value.join(' '))]
}

function operandWords(operand: CompletionValue): string[] {
  return typeof operand === 'string' ? ['-F'] : ['-a', quote(operand.join(' '))]
}

function completeLine(condition: string, words: readonly string[], summary: string): string {
  const conditionOption = condition === '' ? [] : ['-n', quote(condition)]
  const description = summary === '' ? [] : ['-d', quote(summary)]
  return ['complete', '-c', 'wb', ...conditionOption, ...words, ...description].join(' ')
}

/** Quotes a string for fish. */
function quote(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
