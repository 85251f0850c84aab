import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { typedProgram, withTypedProgram } from '../../src/cli/launch-command.ts'
import { scratchDir } from '../harness/runtime.ts'

const program = resolve('bin/run.js')

/** Returns what a user types if the only folder on the PATH is the given one. */
function launchCommandIn(folder: string): string {
  return typedProgram({ env: { PATH: folder }, script: program, cwd: resolve('.') })
}

describe('the suggested launch command', () => {
  test.each([
    `#!/bin/sh\nexec node "${program}" "$@"\n`,
    '#!/bin/sh\nexec node "$basedir/global/5/node_modules/workbase/bin/run.js" "$@"\n',
  ])('is wb if a script of that name on the PATH starts it: %j', script => {
    const folder = scratchDir()
    writeFileSync(join(folder, 'wb'), script, { mode: 0o755 })
    expect(launchCommandIn(folder)).toBe('wb')
  })

  test.each<[string, (path: string) => unknown]>([
    ['another program', path => writeFileSync(path, '#!/bin/sh\nexec weight-balance "$@"\n')],
    ['a program of megabytes', path => writeFileSync(path, program.padEnd(1_000_000))],
    ['a folder', path => mkdirSync(path)],
    ['a pipe without a writer', path => execFileSync('mkfifo', [path])],
    ['missing', () => {}],
  ])('is node and the script if wb on the PATH is %s', (_what, create) => {
    const folder = scratchDir()
    create(join(folder, 'wb'))
    expect(launchCommandIn(folder)).toBe('node bin/run.js')
  })

  test('replaces wb only where a line starts with a command or suggests one', () => {
    const io = { env: { PATH: scratchDir() }, script: program, cwd: resolve('.') }
    const text = '  wb kb list && wb jobs list\nthe wb command, did you mean wb ask?\nuse wb serve'
    expect(withTypedProgram(text, io)).toBe(
      '  node bin/run.js kb list && node bin/run.js jobs list\nthe wb command, did you mean node bin/run.js ask?\nuse wb serve',
    )
  })
})
