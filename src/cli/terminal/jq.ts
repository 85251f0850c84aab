import { UsageError } from '../errors.ts'
import type { Signals } from '../io.ts'
import { plainLine, truncate } from './terminal-text.ts'

/** Applies a jq expression to a value, and returns its results. */
export type JqFilter = (value: unknown) => unknown[]

/** Maximum length of a jq message, which could contain the whole input. */
const messageCharsMax = 200
const example = "wb kb list --jq '.[].name'"

/**
 * Returns a filter for the expression of `--jq`. Checks the expression immediately, so that errors are reported before
 * the command does anything.
 *
 * @throws UsageError  jq rejects the expression; the filter throws it if jq rejects a value
 * @see https://jqlang.org/manual
 */
export async function jqFilter(
  expression: string,
  signals: Pick<Signals, 'withDefaults'>,
): Promise<JqFilter> {
  const { loadJq } = await import('jq-wasm')
  const jq = await loadJq()
  const run = (json: string): unknown[] => {
    // After `--`, jq does not parse an expression such as `-h` as a flag.
    const { stdout, stderr, exitCode } = runWithoutConsole(() =>
      signals.withDefaults(() => jq.raw(json, expression, ['--compact-output', '--'])),
    )
    if (exitCode !== 0) throw new UsageError(`--jq: ${jqMessage(stderr)}`, [example])
    return stdout === '' ? [] : stdout.split('\n').map(line => JSON.parse(line))
  }
  run('')
  return value => run(JSON.stringify(value) ?? 'null')
}

/** Runs jq, and discards what it writes to the console. @throws UsageError  jq ran out of memory or stack */
function runWithoutConsole<T>(run: () => T): T {
  const { error: originalError } = console
  console.error = () => {}
  try {
    return run()
  } catch {
    throw new UsageError('--jq: the expression needs too much memory', [example])
  } finally {
    console.error = originalError
  }
}

/** Returns the error message of jq without its prefix and positions. */
function jqMessage(stderr: string): string {
  const lines = stderr.split('\n')
  const line = lines.find(text => /^jq: (?:\w+ )?error\b/.test(text)) ?? lines[0] ?? ''
  const message = line
    .replace(/^jq: (?:error(?: \(at [^)]*\))?:? )?/, '')
    .replace(' at <top-level>,', ' at')
    .replace(/:$/, '')
  return truncate(plainLine(message), messageCharsMax)
}
