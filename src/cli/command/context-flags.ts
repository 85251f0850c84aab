import { shellWord } from '../../base/shell-word.ts'

/** Flags that select the runtime, the workspace and the identity. */
interface ContextFlagValues {
  readonly workspace?: string
  readonly profile?: string
  readonly url?: string
  readonly local?: boolean
  readonly 'data-dir'?: string
  readonly config?: string
  readonly 'as-operator'?: boolean
}

/**
 * Returns the typed flags that a suggested command needs to use the same runtime, workspace and identity,
 * with a leading space.
 */
export function contextFlags(flags: ContextFlagValues): string {
  const options = {
    '-w': flags.workspace,
    '--profile': flags.profile,
    '--url': flags.url,
    '--data-dir': flags['data-dir'],
    '--config': flags.config,
  }
  const words = Object.entries(options).flatMap(([flag, value]) =>
    value === undefined ? [] : [` ${flag} ${shellWord(value)}`],
  )
  const switches = ['local', 'as-operator'] as const
  return [...words, ...switches.filter(name => flags[name]).map(name => ` --${name}`)].join('')
}
