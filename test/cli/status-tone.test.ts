import { expect, test } from 'vitest'
import { keyColumns } from '../../src/cli/fields/key.ts'
import { statusTone } from '../../src/cli/fields/status-tone.ts'
import { Output } from '../../src/cli/terminal/output.ts'
import type { ApiKey } from '../../src/contract/keys.ts'

const now = Date.parse('2026-01-01T00:00:00.000Z')

function terminal(colour: boolean) {
  const text: string[] = []
  const stdout = { isTTY: true, columns: 100, write: (more: string) => text.push(more) }
  const output = new Output({
    stdout,
    stderr: stdout,
    json: false,
    quiet: false,
    useColor: colour,
    now: () => now,
  })
  return { output, rows: () => text.join('').split('\n') }
}

test.each([
  ['ready', 'good'],
  ['running', 'warning'],
  ['failed', 'bad'],
  ['something new', undefined],
])('the tone of %s is %s', (status, tone) => {
  expect(statusTone(status)).toBe(tone)
})

test('colors the state of a key green, yellow or red in a terminal', () => {
  const key = (label: string, more: Partial<ApiKey> = {}) =>
    ({
      keyId: label,
      prefix: label,
      label,
      role: 'viewer',
      scopes: [],
      principalId: null,
      createdAt: '2025-12-01T00:00:00.000Z',
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
      ...more,
    }) as unknown as ApiKey
  const keys = [
    key('works'),
    key('gone', { revokedAt: '2025-12-02T00:00:00.000Z' }),
    key('old', { expiresAt: '2025-12-31T00:00:00.000Z' }),
    key('twin', { principalId: 'p', expiresAt: '2026-01-01T12:00:00.000Z' }),
    key('twin', { principalId: 'p', createdAt: '2025-12-31T12:00:00.000Z' }),
  ]
  const { output, rows } = terminal(true)
  output.list(keys, { columns: keyColumns(keys, now), empty: [] })
  expect(rows().slice(1, 6)).toMatchObject([
    expect.stringContaining('\x1b[32mactive\x1b[39m'),
    expect.stringContaining('\x1b[31mrevoked\x1b[39m'),
    expect.stringContaining('\x1b[31mexpired\x1b[39m'),
    expect.stringContaining('\x1b[33mreplaced\x1b[39m'),
    expect.stringContaining('\x1b[32mactive\x1b[39m'),
  ])
  const plain = terminal(false)
  plain.output.list(keys, { columns: keyColumns(keys, now), empty: [] })
  expect(plain.rows().join('')).not.toContain('\x1b')
})
