import { singleQuoted } from '../../base/shell-word.ts'
import type { CompletionFlag, CompletionSpec, CompletionValue } from './completion-spec.ts'

/**
 * Returns a completion script for bash.
 *
 * @see https://www.gnu.org/software/bash/manual/html_node/Programmable-Completion.html
 */
export function bashScript(spec: CompletionSpec): string {
  const { topics, commands, globalFlags } = spec
  const paths = [...topics, ...commands].map(({ path }) => path).filter(Boolean)
  const flagValueCases = [
    ...globalFlags.flatMap(flag => valueCases('*', flag)),
    ...commands.flatMap(({ path, flags }) =>
      flags.flatMap(flag => valueCases(singleQuoted(` ${path}`), flag)),
    ),
  ]
  const flagCases = commands.map(
    ({ path, flags }) =>
      `${singleQuoted(` ${path}`)}) words=${quoteList(flagNames(flags))}" $global_flags" ;;`,
  )
  const wordCases = [
    ...topics.map(topic => [topic.path, topic.words.map(({ word }) => word)] as const),
    ...commands.map(({ path, operand }) => [path, operand] as const),
  ].map(([path, value]) => `${singleQuoted(path ? ` ${path}` : '')}) ${completeValue(value)} ;;`)
  return `# Completes wb in bash: source <(wb autocomplete bash)
_wb() {
  local line=\${COMP_LINE:0:COMP_POINT} command_path='' words='' cur prev index
  local global_flags=${quoteList([...flagNames(globalFlags), '--help'])}
  COMPREPLY=()
  cur=\${line##*[[:blank:]]}
  prev=\${line%"$cur"}
  prev=\${prev%"\${prev##*[![:blank:]]}"}
  prev=\${prev##*[[:blank:]]}
  [[ $cur == --*=* ]] && prev=\${cur%%=*} cur=\${cur#*=}
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$command_path \${COMP_WORDS[index]}" in
      ${paths.map(path => singleQuoted(` ${path}`)).join(' | ')}) command_path+=" \${COMP_WORDS[index]}" ;;
      *) break ;;
    esac
  done
  case "$command_path $prev" in
${indent(flagValueCases)}
    *) case $cur in
      -*) case $command_path in
${indent(flagCases, 8)}
        '') words='--help --version' ;;
        *) words='--help' ;;
      esac ;;
      *) case $command_path in
${indent(wordCases, 8)}
      esac ;;
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  # bash splits words at colons, and replaces only the part after the last colon.
  [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]] && COMPREPLY=("\${COMPREPLY[@]#"\${cur%"\${cur##*:}"}"}")
  return 0
}
complete -o default -F _wb wb workbase
`
}

/** Shell code for a value without completions. It also disables the completion of file names. */
const noCompletion = 'compopt +o default 2>/dev/null; return 0'

function valueCases(path: string, { names, value }: CompletionFlag): string[] {
  if (value === undefined) return []
  return [
    `${names.map(name => `${path}${singleQuoted(` ${name}`)}`).join(' | ')}) ${completeValue(value)} ;;`,
  ]
}

/** Returns shell code that completes a value. Files and folders need no code, because bash completes them by default. */
function completeValue(value: CompletionValue): string {
  if (value === 'text') return noCompletion
  return typeof value === 'string' ? 'return 0' : `words=${quoteList(value)}`
}

function flagNames(flags: readonly CompletionFlag[]): string[] {
  return flags.flatMap(flag => flag.names)
}

function quoteList(words: readonly string[]): string {
  return singleQuoted(words.join(' '))
}

function indent(lines: readonly string[], width = 4): string {
  return lines.map(line => ' '.repeat(width) + line).join('\n')
}
