import { describe, expect, test } from 'vitest'
import { type Column, formatCounted } from '../../src/cli/terminal/output.ts'
import { recordedOutput } from '../harness/recorded-output.ts'

interface Item {
  name: string
  size: number | null
  made: string | null
}

const columns: Record<string, Column<Item>> = {
  id: { value: ({ name }) => `id-${name}`, pipeOnly: true },
  name: { value: ({ name }) => name, format: 'flexible' },
  size: { value: ({ size }) => size, format: 'count' },
  made: { value: ({ made }) => made, format: 'time' },
}
const items: Item[] = [
  { name: 'report', size: 1_204, made: '2026-06-15T11:57:00Z' },
  { name: 'a rather long name of a file', size: 7, made: null },
]

describe('a list', () => {
  test('in a terminal has headings, aligned counts and relative times', () => {
    const { output, written } = recordedOutput({ columns: 80 })
    output.list(items, { columns, empty: [], total: '2,000' })
    expect(written.stdout).toBe(
      [
        '  name                           size  made',
        '  report                        1,204  3 min ago',
        '  a rather long name of a file      7  –',
        '',
      ].join('\n'),
    )
    expect(written.stderr).toBe('  2 of 2,000\n')
  })

  test('is as wide as 80 columns in a terminal that reports no width', () => {
    const { output, written } = recordedOutput({ columns: 0 })
    output.list(items, { columns, empty: [] })
    expect(written.stdout).toContain('\n  report                        1,204  3 min ago\n')
    output.note('  one two three')
    expect(written.stderr).toBe('  one two three\n')
  })

  test('truncates flexible columns to the width of the terminal', () => {
    const { output, written } = recordedOutput({ columns: 36 })
    output.list(items, { columns, empty: [] })
    expect(written.stdout).toBe(
      [
        '  name               size  made',
        '  report            1,204  3 min ago',
        '  a rather long n…      7  –',
        '',
      ].join('\n'),
    )
  })

  test('shows one field per line if a row does not fit', () => {
    const { output, written } = recordedOutput({ columns: 26 })
    output.list(items, { columns, empty: [] })
    expect(written.stdout).toBe(
      [
        '  name  report',
        '  size  1,204',
        '  made  3 min ago',
        '',
        '  name  a rather long name',
        '    of a file',
        '  size  7',
        '',
        '',
      ].join('\n'),
    )
  })

  test('omits columns without values', () => {
    const { output, written } = recordedOutput({ columns: 80 })
    output.list([{ name: 'x', size: 0, made: null }], { columns, empty: [] })
    expect(written.stdout).toBe('  name  size\n  x        0\n')
  })

  test('in a pipe has all columns, tabs and exact values', () => {
    const { output, written } = recordedOutput({ isTTY: false })
    output.list(items, { columns, empty: [] })
    expect(written.stdout).toBe(
      'id-report\treport\t1204\t2026-06-15T11:57:00Z\nid-a rather long name of a file\ta rather long name of a file\t7\t\n',
    )
  })

  test('is an array with --json, and says on stderr that it is empty', () => {
    const json = recordedOutput({ isTTY: false, json: true })
    json.output.list([{ name: 'x', size: 1, made: null }], { columns, empty: ['none'] })
    expect(json.written).toEqual({ stdout: '[{"name":"x","size":1,"made":null}]\n', stderr: '' })
    const empty = recordedOutput()
    empty.output.list([], { columns, empty: ['no items', 'wb create'] })
    expect(empty.written).toEqual({ stdout: '', stderr: '  no items\n  wb create\n' })
  })
})

describe('a row', () => {
  test('in a terminal is padded to the minimum width, with a time of day', () => {
    const { output, written } = recordedOutput({ columns: 60 })
    output.row(items[0]!, { ...columns, name: { ...columns.name!, widthMin: 10 } })
    expect(written.stdout).toMatch(/^ {2}report {6}1,204 {2}\d\d:57:00\n$/)
  })

  test('is wrapped if it cannot be truncated enough', () => {
    const { output, written } = recordedOutput({ columns: 19 })
    output.row({ name: 'one two three four five', size: 5, made: null }, columns)
    expect(written.stdout).toBe('  one two three\n    four five  5  –\n')
  })

  test('is tab-separated in a pipe, and a line with --json', () => {
    const pipe = recordedOutput({ isTTY: false })
    pipe.output.row(items[1]!, columns)
    expect(pipe.written.stdout).toContain('of a file\t7\t\n')
    const json = recordedOutput({ json: true })
    json.output.row({ name: 'x', size: 1, made: null }, columns)
    expect(json.written.stdout).toBe('{"name":"x","size":1,"made":null}\n')
  })
})

describe('fields', () => {
  const fields = {
    name: 'x',
    none: null,
    blank: '',
    zero: 0,
    off: false,
    created: { time: '2026-06-15T11:00:00Z' },
    until: { due: '2026-06-15T14:00:00Z' },
    never: { due: null },
  }

  test('in a terminal are aligned, and the empty ones are omitted', () => {
    const { output, written } = recordedOutput()
    output.fields({}, fields)
    expect(written.stdout).toBe(
      '  name     x\n  zero     0\n  off      false\n  created  1 h ago\n  until    in 2 h\n  never    –\n',
    )
  })

  test('in a pipe have exact times', () => {
    const { output, written } = recordedOutput({ isTTY: false })
    output.fields({}, fields)
    expect(written.stdout).toBe(
      'name\tx\nzero\t0\noff\tfalse\ncreated\t2026-06-15T11:00:00Z\nuntil\t2026-06-15T14:00:00Z\nnever\t\n',
    )
  })
})

describe('messages', () => {
  test('go to stderr, and are silent with --quiet unless they are warnings', () => {
    const { output, written } = recordedOutput({ quiet: true, contextFlags: ' -w demo' })
    output.note('saved')
    output.suggest('wb kb list')
    expect(written.stderr).toBe('')
    output.warn('careful')
    expect(written).toEqual({ stdout: '', stderr: 'careful\n' })
    const loud = recordedOutput({ contextFlags: ' -w demo' })
    loud.output.suggest('wb kb list')
    expect(loud.written.stderr).toBe('  wb kb list -w demo\n')
  })

  test('are adapted, and wrapped in a terminal only', () => {
    const adaptCommands = (text: string) => text.replace('wb', 'npx workbase')
    const terminal = recordedOutput({ columns: 24, adaptCommands })
    terminal.output.warn('run wb and then read the text')
    expect(terminal.written.stderr).toBe('run npx workbase and\n  then read the text\n')
    const pipe = recordedOutput({ isTTY: false, columns: 24, adaptCommands })
    pipe.output.warn('run wb and then read the text')
    expect(pipe.written.stderr).toBe('run npx workbase and then read the text\n')
  })

  test('contain no secret of a key and no control sequence', () => {
    const { output, written } = recordedOutput()
    output.trace('wb_live_abcdef123456_secret\x1b[2J')
    output.result('a\x1b[2Jb')
    expect(written).toEqual({ stdout: 'ab\n', stderr: 'wb_live_abcdef123456_…\n' })
  })
})

describe('values', () => {
  test('are indented in a terminal, and filtered with --jq', () => {
    const terminal = recordedOutput()
    terminal.output.value({ a: 1 })
    terminal.output.line({ a: 1 })
    expect(terminal.written.stdout).toBe('{\n  "a": 1\n}\n{"a":1}\n')
    const filtered = recordedOutput({ filter: () => ['x\x1b[2J', { b: 1 }] })
    filtered.output.value({ a: 1 })
    expect(filtered.written.stdout).toBe('x\n{\n  "b": 1\n}\n')
    expect(filtered.output).toMatchObject({ json: true, interactive: false, hasFilter: true })
    const raw = recordedOutput({ isTTY: false, filter: () => ['x\x1b[2J'] })
    raw.output.value({ a: 1 })
    expect(raw.written.stdout).toBe('x\x1b[2J\n')
    expect(terminal.output).toMatchObject({ json: false, interactive: true, hasFilter: false })
  })

  test('a change is a sentence in a terminal, an ID in a pipe, and an object with --json', () => {
    const report = (options: Parameters<typeof recordedOutput>[0]) => {
      const { output, written } = recordedOutput(options)
      output.reportSaved({ id: 'x' }, 'x', 'created x')
      output.reportDeleted('y', 'deleted y')
      return written
    }
    expect(report({})).toEqual({ stdout: '  ✓ created x\n', stderr: '  ✓ deleted y\n' })
    expect(report({ isTTY: false })).toEqual({ stdout: 'x\n', stderr: '  ✓ deleted y\n' })
    expect(report({ isTTY: false, json: true }).stdout).toBe('{"id":"x"}\n{"deleted":"y"}\n')
  })

  test('a terminal without a known width has 80 columns, and a pipe has no limit', () => {
    expect(recordedOutput({ isTTY: false }).output.width).toBe(Number.POSITIVE_INFINITY)
    const sink = { isTTY: true, write: () => true }
    expect(recordedOutput({ stdout: sink }).output.width).toBe(80)
  })
})

test.each([
  [1, '1 chunk'],
  [0, '0 chunks'],
  [1_204, '1,204 chunks'],
])('counts %i', (value, text) => {
  expect(formatCounted(value, 'chunk')).toBe(text)
})
