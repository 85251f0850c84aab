import { singleQuoted } from '../../base/shell-word.ts'
import type { CompletionFlag, CompletionSpec, CompletionTopic, CompletionValue } from './completion-spec.ts'

/**
 * Returns a completion script for zsh. Users can source the script, or store it as `_wb` in the function path.
 *
 * @see https://zsh.sourceforge.io/Doc/Release/Completion-System.html
 */
export function zshScript({ topics, commands, globalFlags }: CompletionSpec): string {
  const paths = [...topics, ...commands].map(({ path }) => path).filter(Boolean)
  const operands = commands.map(({ path, flags, operand }) => {
    const specs = [
      ...flags.flatMap(flagSpecs),
      `*:${operand === 'text' ? ' ' : 'argument'}:${completeValue(operand)}`,
    ]
    return `    ${singleQuoted(` ${path}`)}) command_flags=(${specs.map(singleQuoted).join(' ')}) ;;`
  })
  return `#compdef wb workbase
# Completes wb in zsh: source <(wb autocomplete zsh)
_wb() {
  local command_path='' index=2
  local -a subcommands command_flags global_flags
  while (( index < CURRENT )); do
    case "$command_path \${words[index]}" in
      (${paths.map(path => singleQuoted(` ${path}`)).join('|')}) command_path+=" \${words[index]}"; (( index++ )) ;;
      (*) break ;;
    esac
  done
  case $command_path in
${topics.map(topicCase).join('\n')}
${operands.join('\n')}
  esac
  if (( $#command_flags )); then
    global_flags=(${[...globalFlags.flatMap(flagSpecs), '--help[show help]'].map(singleQuoted).join(' ')})
    words=(wb "\${(@)words[index,-1]}")
    (( CURRENT -= index - 2 ))
    _arguments -s -S : $command_flags $global_flags
  elif (( index == CURRENT )); then
    _describe command subcommands
  fi
}
if [[ \${funcstack[1]} == _wb ]]; then
  _wb "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _wb wb workbase
fi
`
}

function topicCase({ path, words }: CompletionTopic): string {
  const subcommands = words.map(({ word, summary }) => singleQuoted(`${word}:${summary}`))
  return `    ${singleQuoted(path ? ` ${path}` : '')}) subcommands=(${subcommands.join(' ')}) ;;`
}

/** Returns one `_arguments` specification for each name of a flag. A flag that was typed is not offered again. */
function flagSpecs({ names, summary, value, isMultiple }: CompletionFlag): string[] {
  const exclusions = isMultiple ? '*' : names.length > 1 ? `(${names.join(' ')})` : ''
  const description = `[${summary.replace(/[[\]\\]/g, '\\$&')}]`
  if (value === undefined) return names.map(name => `${exclusions}${name}${description}`)
  return names.map(
    name =>
      `${exclusions}${name}${name.startsWith('--') ? '=' : '+'}${description}:value:${completeValue(value)}`,
  )
}

function completeValue(value: CompletionValue): string {
  if (value === 'text') return ''
  if (value === 'file') return '_files'
  return value === 'folder' ? '_files -/' : `(${value.map(word => word.replaceAll(':', '\\:')).join(' ')})`
}
