import { UsageError } from '../errors.ts'
import type { Signals } from '../io.ts'
import { plainLine, truncate } from './terminal-text.ts'

/** What a jq expression makes of a value: none, one or several. */
export type Filter = (value: unknown) => unknown[]

/** Cells of a message: an expression may fail with all that it was given. */
const complaintMax = 200
const example = "wb kb list --jq '.[].name'"

/**
 * The filter of `--jq`. The expression is compiled here, so that a wrong one is told before anything is done.
 *
 * @throws UsageError  jq refuses the expression, here or for a value: in jq's own words
 * @see https://jqlang.org/manual
 */
export async function jqFilter(expression: string, signals: Pick<Signals, 'withDefaults'>): Promise<Filter> {
  const { loadJq } = await import('jq-wasm')
  const jq = await loadJq()
  const run = (json: string): unknown[] => {
    // After `--` an expression such as `-h` is no flag of jq.
    const { stdout, stderr, exitCode } = quietly(() =>
      signals.withDefaults(() => jq.raw(json, expression, ['--compact-output', '--'])),
    )
    if (exitCode !== 0) throw new UsageError(`--jq: ${complaint(stderr)}`, [example])
    return stdout === '' ? [] : stdout.split('\n').map(line => JSON.parse(line))
  }
  run('')
  return value => run(JSON.stringify(value) ?? 'null')
}

/**
 * Runs jq, which prints nothing past its own stderr.
 *
 * @throws UsageError  jq broke down, as it does where its memory or its stack is full
 */
function quietly<T>(run: () => T): T {
  const { error: print } = console
  console.error = () => {}
  try {
    return run()
  } catch {
    throw new UsageError('--jq: the expression needs too much memory', [example])
  } finally {
    console.error = print
  }
}

/** The line of jq's that says what is wrong, without the places that only jq knows. */
function complaint(stderr: string): string {
  const lines = stderr.split('\n')
  const line = lines.find(text => /^jq: (?:\w+ )?error\b/.test(text)) ?? lines[0] ?? ''
  const said = line
    .replace(/^jq: (?:error(?: \(at [^)]*\))?:? )?/, '')
    .replace(' at <top-level>,', ' at')
    .replace(/:$/, '')
  return truncate(plainLine(said), complaintMax)
}
