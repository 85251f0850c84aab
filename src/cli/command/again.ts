import { shellWord } from '../terminal/shell-word.ts'

/** Flags that say where a command works, and as whom. */
interface Placed {
  readonly workspace?: string
  readonly profile?: string
  readonly url?: string
  readonly local?: boolean
  readonly 'data-dir'?: string
  readonly config?: string
  readonly 'as-operator'?: boolean
}

/** What a line to type next needs, to work where the command did and as whom: the flags that were typed, after a blank. */
export function again(flags: Placed): string {
  const named = {
    '-w': flags.workspace,
    '--profile': flags.profile,
    '--url': flags.url,
    '--data-dir': flags['data-dir'],
    '--config': flags.config,
  }
  const words = Object.entries(named).flatMap(([flag, value]) =>
    value === undefined ? [] : [` ${flag} ${shellWord(value)}`],
  )
  const switches = ['local', 'as-operator'] as const
  return [...words, ...switches.filter(name => flags[name]).map(name => ` --${name}`)].join('')
}
