import { singleQuoted } from '../../base/shell-word.ts'
import type { CompletedFlag, CompletedTopic, CompletedValue, CompletionSpec } from './completion-spec.ts'

/**
 * Returns a completion script for zsh, to be sourced or stored as `_wb` in the function path.
 *
 * @see https://zsh.sourceforge.io/Doc/Release/Completion-System.html
 */
export function zshScript({ topics, commands, globalFlags }: CompletionSpec): string {
  const paths = [...topics, ...commands].map(({ path }) => path).filter(Boolean)
  const operands = commands.map(({ path, flags, operand }) => {
    const specs = [
      ...flags.flatMap(flagSpecs),
      `*:${operand === 'text' ? ' ' : 'what'}:${completeValue(operand)}`,
    ]
    return `    ${singleQuoted(` ${path}`)}) own=(${specs.map(singleQuoted).join(' ')}) ;;`
  })
  return `#compdef wb workbase
# Completes wb in zsh: source <(wb autocomplete zsh)
_wb() {
  local said='' at=2
  local -a offered own everywhere
  while (( at < CURRENT )); do
    case "$said \${words[at]}" in
      (${paths.map(path => singleQuoted(` ${path}`)).join('|')}) said+=" \${words[at]}"; (( at++ )) ;;
      (*) break ;;
    esac
  done
  case $said in
${topics.map(topicCase).join('\n')}
${operands.join('\n')}
  esac
  if (( $#own )); then
    everywhere=(${[...globalFlags.flatMap(flagSpecs), '--help[show help]'].map(singleQuoted).join(' ')})
    words=(wb "\${(@)words[at,-1]}")
    (( CURRENT -= at - 2 ))
    _arguments -s -S : $own $everywhere
  elif (( at == CURRENT )); then
    _describe command offered
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

function topicCase({ path, words }: CompletedTopic): string {
  const offered = words.map(({ word, summary }) => singleQuoted(`${word}:${summary}`))
  return `    ${singleQuoted(path ? ` ${path}` : '')}) offered=(${offered.join(' ')}) ;;`
}

/** Returns the `_arguments` specification of a flag. Its two names exclude each other. */
function flagSpecs({ names, summary, value, isMultiple }: CompletedFlag): string[] {
  const others = isMultiple ? '*' : names.length > 1 ? `(${names.join(' ')})` : ''
  const about = `[${summary.replace(/[[\]\\]/g, '\\$&')}]`
  if (value === undefined) return names.map(name => `${others}${name}${about}`)
  return names.map(
    name => `${others}${name}${name.startsWith('--') ? '=' : '+'}${about}:value:${completeValue(value)}`,
  )
}

function completeValue(follows: CompletedValue): string {
  if (follows === 'text') return ''
  if (follows === 'file') return '_files'
  return follows === 'folder'
    ? '_files -/'
    : `(${follows.map(word => word.replaceAll(':', '\\:')).join(' ')})`
}
