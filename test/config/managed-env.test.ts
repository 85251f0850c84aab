import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  parseManagedEnv,
  readManagedEnv,
  readManagedEnvState,
  withAssignments,
  writeManagedEnv,
} from '../../src/config/managed-env.ts'
import { programPath } from '../harness/program.ts'
import { scratchDir } from '../harness/runtime.ts'

const name = fc.constantFrom('OPENAI_API_KEY', 'OPENROUTER_API_KEY', 'A', 'b_1')
const value = fc.string({ unit: 'binary' }).filter(text => !/[\0-\t\v-\x1f\x7f]/.test(text))
const values = fc.dictionary(name, value).map(entries => new Map(Object.entries(entries)))

describe('withAssignments', () => {
  test('round-trips arbitrary values', () => {
    fc.assert(
      fc.property(values, written => {
        const { variables, badLine } = parseManagedEnv(withAssignments('', written))
        expect(badLine).toBeUndefined()
        expect(variables).toEqual(written)
      }),
    )
  })

  test('later values replace earlier ones, and other variables remain', () => {
    fc.assert(
      fc.property(values, values, (first, second) => {
        const { variables } = parseManagedEnv(withAssignments(withAssignments('', first), second))
        expect(variables).toEqual(new Map([...first, ...second]))
      }),
    )
  })

  test('keeps a value on one line', () => {
    const text = withAssignments('', new Map([['A', '"\\\n"\nB="x']]))
    expect(text.trimEnd().split('\n')).toHaveLength(1)
    expect([...parseManagedEnv(text).variables.keys()]).toEqual(['A'])
  })

  test('keeps comments and other variables in place, and removes duplicate names', () => {
    const before = "\ufeff# mine\r\nexport A='1' # one\r\nSECRET=x\r\n\r\nA=2\r\n\r\n"
    const after = withAssignments(
      before,
      new Map([
        ['A', 'a'],
        ['B', 'b'],
      ]),
    )
    expect(after).toBe('# mine\nA="a"\nSECRET=x\nB="b"\n')
  })
})

describe('writeManagedEnv', () => {
  const one = new Map([['A', '1']])

  test('creates the folder and the file for their owner only, and leaves no temporary file', () => {
    const dataDir = join(scratchDir(), 'data')
    expect(readManagedEnvState(dataDir)).toEqual({
      path: join(dataDir, '.env'),
      present: false,
      writable: true,
    })
    writeManagedEnv(dataDir, one)
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
    expect(statSync(join(dataDir, '.env')).mode & 0o777).toBe(0o600)
    expect(readdirSync(dataDir)).toEqual(['.env'])
    expect(readManagedEnvState(dataDir).present).toBe(true)
  })

  test('restricts a file that others could read', () => {
    const dataDir = scratchDir()
    writeFileSync(join(dataDir, '.env'), 'B=2\n')
    chmodSync(join(dataDir, '.env'), 0o644)
    writeManagedEnv(dataDir, one)
    expect(statSync(join(dataDir, '.env')).mode & 0o777).toBe(0o600)
    expect(readManagedEnv(dataDir)).toEqual(
      new Map([
        ['B', '2'],
        ['A', '1'],
      ]),
    )
  })

  test.each<[what: string, stored: string | Buffer, message: RegExp]>([
    ['an invalid line', 'A=1\nsecret words\n', /line 2 .*nothing was written/],
    ['invalid UTF-8', Buffer.from([0x41, 0x3d, 0xff]), /not UTF-8; nothing was written/],
    ['64 KB', `B=${'x'.repeat(65_530)}\n`, /larger than 64 KB; nothing was written/],
  ])('rejects a file with %s, and leaves it unchanged', (_what, stored, message) => {
    const dataDir = scratchDir()
    writeFileSync(join(dataDir, '.env'), stored)
    expect(() => writeManagedEnv(dataDir, one)).toThrow(
      expect.objectContaining({ code: 'conflict', message: expect.stringMatching(message) }),
    )
    expect(readFileSync(join(dataDir, '.env'))).toEqual(Buffer.from(stored))
  })

  test('accepts a file of 64 KB, and rejects one more byte without a change', () => {
    const dataDir = scratchDir()
    const path = join(dataDir, '.env')
    // `B="…"`, a line feed, `A="1"` and a line feed.
    const filled = (bytes: number) =>
      writeManagedEnv(dataDir, new Map([...one, ['B', 'x'.repeat(bytes - 11)]]))
    filled(65_536)
    expect(statSync(path).size).toBe(65_536)
    expect(() => filled(65_537)).toThrow(/larger than 64 KB/)
    expect(readManagedEnv(dataDir).get('B')).toHaveLength(65_525)
  })

  test('creates nothing without values', () => {
    const dataDir = scratchDir()
    writeManagedEnv(dataDir, new Map())
    expect(existsSync(join(dataDir, '.env'))).toBe(false)
  })

  test('a killed writer leaves the old or the new file complete', { timeout: 60_000 }, async () => {
    const dataDir = join(scratchDir(), 'data')
    mkdirSync(dataDir)
    const texts = ['a', 'b'].map(letter => letter.repeat(4_000))
    writeManagedEnv(dataDir, new Map([['A', texts[0]!]]))
    for (let round = 0; round < 8; round++) {
      const child = spawn(process.execPath, [programPath('write-managed-env'), dataDir, ...texts], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      await once(child.stdout, 'data')
      await new Promise(done => setTimeout(done, 3 + round * 7))
      child.kill('SIGKILL')
      await once(child, 'exit')
      expect(texts).toContain(readManagedEnv(dataDir).get('A'))
    }
  })
})
