import { hostFacts } from '../../base/host-facts.ts'
import type { DataDirReport } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { wrapLine } from '../terminal/wrap.ts'
import type { Check } from './check.ts'
import type { CheckResults } from './doctor.ts'

const symbols: Record<Check['state'], string> = { ok: '✓', warning: '!', failed: '✗', skipped: '–' }
const nameWidth = 10

/** Returns the result of all checks as JSON. */
export function doctorJson(
  { dataDir }: Pick<Profile, 'dataDir'>,
  { server, isReady, configPath, config: { problems, warnings } }: CheckResults,
  { checks, storeReport }: { checks: readonly Check[]; storeReport?: DataDirReport },
): object {
  return {
    ok: checks.every(({ state }) => state !== 'failed'),
    node: `v${hostFacts.nodeVersion}`,
    dataDir,
    server: server ? { url: server.url, pid: server.pid, startedAt: server.startedAt, ready: isReady } : null,
    config: { path: configPath, problems, warnings },
    ...(storeReport && { store: storeReport }),
    checks,
  }
}

/**
 * Prints each check, followed by its suggested command. In a pipe, prints one line for each check: name, state,
 * detail and command, separated by tabs.
 */
export function printChecks(output: Output, checks: readonly Check[]): void {
  for (const check of checks)
    for (const line of output.interactive ? checkLines(output, check) : [pipeLine(check)]) output.result(line)
}

function pipeLine({ name, state, detail, fix = '' }: Check): string {
  return [name, state, detail, fix].map(plainLine).join('\t')
}

function checkLines({ style, width }: Output, { name, state, detail, fix }: Check): string[] {
  const isSkipped = state === 'skipped'
  const mark = isSkipped ? symbols.skipped : style[state === 'ok' ? 'good' : 'bad'](symbols[state])
  const hangingIndent = nameWidth + 6
  const firstLine = `  ${mark} ${name.padEnd(nameWidth)}  ${plainLine(detail)}`
  const wrapped = wrapLine(firstLine, width, hangingIndent).map(line => (isSkipped ? style.dim(line) : line))
  // The command is not wrapped, so it can be copied.
  return fix === undefined || isSkipped
    ? wrapped
    : [...wrapped, `${' '.repeat(hangingIndent)}${plainLine(fix)}`]
}
