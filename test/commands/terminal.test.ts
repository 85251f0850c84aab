import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { nearestMatch } from '../../src/base/nearest-match.ts'
import { exitStatus } from '../../src/cli/command/exit.ts'
import { reportJson, reportLines, toReport } from '../../src/cli/command/report.ts'
import { Interrupted, UsageError } from '../../src/cli/errors.ts'
import { formatAgo } from '../../src/cli/terminal/duration.ts'
import { Output, type Sink } from '../../src/cli/terminal/output.ts'
import { progressLine, terminalProgress } from '../../src/cli/terminal/progress.ts'
import { styleFor } from '../../src/cli/terminal/style.ts'
import { displayWidth, plain, plainJson, plainLine, truncate } from '../../src/cli/terminal/terminal-text.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import { type ErrorCode, WbError } from '../../src/contract/errors.ts'

/** Text that attacks a terminal, and the text that remains after sanitizing. */
const attacks: [name: string, planted: string, left: string][] = [
  ['window title', 'a\x1b]0;owned\x07b', 'ab'],
  ['window title ended by ST', 'a\x1b]2;owned\x1b\\b', 'ab'],
  ['clipboard (OSC 52)', 'a\x1b]52;c;cm0gLXJm\x07b', 'ab'],
  ['link (OSC 8)', '\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\', 'text'],
  ['cursor moves', 'a\x1b[2J\x1b[1;1H\x1b[31mb\x1b[0m', 'ab'],
  ['an 8-bit CSI', 'a\x9b31mb', 'ab'],
  ['an 8-bit OSC', 'a\x9d0;owned\x9cb', 'ab'],
  ['a device string', 'a\x1bP1$r0m\x1b\\b', 'ab'],
  ['a reset', 'a\x1bcb', 'ab'],
  ['a sequence that is cut short', 'a\x1b[', 'a'],
  ['carriage return and backspace', 'good\r\x08\x08bad', 'goodbad'],
  ['bell, delete and NUL', 'a\x07\x7f\x00b', 'ab'],
  ['text that runs backwards', 'a\u202egpj.exe\u202c', 'agpj.exe'],
]

describe('untrusted text', () => {
  test.each(attacks)('%s is stripped [security rule 16]', (_name, planted, remaining) => {
    expect(plain(planted)).toBe(remaining)
  })

  test.each(attacks)(
    '%s is escaped in JSON, which parses to the original [security rule 16]',
    (_name, planted) => {
      const json = plainJson({ text: planted })
      expect(json).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202a-\u202e]/)
      expect(JSON.parse(json)).toEqual({ text: planted })
    },
  )

  test('keeps newlines and tabs in text, and removes them from single lines', () => {
    expect(plain('a\r\n\tb')).toBe('a\n\tb')
    expect(plainLine('  a\r\n\tb ')).toBe('a b')
  })

  test.each([
    ['plain', 5],
    ['日本', 4],
    ['e\u0301', 1],
    ['👍', 2],
  ])('%s is %i cells wide', (text, width) => {
    expect(displayWidth(text)).toBe(width)
  })

  test('truncates text to a width with an ellipsis, between characters', () => {
    expect(truncate('abcdef', 6)).toBe('abcdef')
    expect(truncate('abcdefg', 6)).toBe('abcde…')
    expect(truncate('日本語日本', 6)).toBe('日本…')
  })
})

function createSink(isTTY: boolean, columns = 40): Sink & { text: string } {
  return {
    isTTY,
    columns,
    text: '',
    write(text: string) {
      this.text += text
    },
  }
}

function output(
  options: { tty?: boolean; json?: boolean; colour?: boolean; quiet?: boolean; columns?: number } = {},
) {
  const stdout = createSink(options.tty ?? false, options.columns)
  const stderr = createSink(options.tty ?? false)
  const { json = false, quiet = false, colour = false } = options
  return {
    stdout,
    stderr,
    out: new Output({ stdout, stderr, json, quiet, useColor: colour, now: () => 600_000 }),
  }
}

const rows = [
  {
    name: 'a\x1b]0;x\x07',
    text: 'some long text that does not fit\ninto the line',
    at: '1970-01-01T00:07:00.000Z',
    n: 1204,
  },
  { name: 'bc', text: null, at: '1970-01-01T00:09:59.500Z', n: 3 },
]
const list = {
  columns: {
    name: { value: (row: (typeof rows)[number]) => row.name },
    text: { value: (row: (typeof rows)[number]) => row.text, format: 'flexible' },
    when: { value: (row: (typeof rows)[number]) => row.at, format: 'time' },
    n: { value: (row: (typeof rows)[number]) => row.n, format: 'count' },
  },
  empty: ['none yet; make one:', '  wb make'],
} as const

describe('a list', () => {
  test('is a table in a terminal, within its width', () => {
    const { out, stdout, stderr } = output({ tty: true })
    out.list(rows, { ...list, total: '50' })
    expect(stdout.text.split('\n')).toEqual([
      '  name  text            when           n',
      '  a     some long tex…  3 min ago  1,204',
      '  bc    –               now            3',
      '',
    ])
    for (const line of stdout.text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(40)
    expect(stderr.text).toBe('  2 of 50\n')
  })

  test('prints one field per line if the terminal is too narrow', () => {
    const { out, stdout } = output({ tty: true, columns: 24 })
    out.list(rows, list)
    expect(stdout.text).toBe(
      [
        '  name  a',
        '  text  some long text',
        '    that does not fit',
        '    into the line',
        '  when  3 min ago',
        '  n     1,204',
        '',
        '  name  bc',
        '  when  now',
        '  n     3',
        '',
        '',
      ].join('\n'),
    )
  })

  test('is tab-separated in a pipe, complete and without headings', () => {
    const { out, stdout } = output()
    out.list(rows, list)
    expect(stdout.text).toBe(
      'a\tsome long text that does not fit into the line\t1970-01-01T00:07:00.000Z\t1204\nbc\t\t1970-01-01T00:09:59.500Z\t3\n',
    )
  })

  test('is an array with --json, as the API returned it', () => {
    const { out, stdout } = output({ json: true })
    out.list(rows, list)
    expect(JSON.parse(stdout.text)).toEqual(rows)
  })

  test('suggests how to create the first item if it is empty, but not with --quiet', () => {
    const { out, stdout, stderr } = output()
    out.list([], list)
    expect([stdout.text, stderr.text]).toEqual(['', '  none yet; make one:\n    wb make\n'])
    const quiet = output({ quiet: true })
    quiet.out.list([], list)
    expect(quiet.stderr.text).toBe('')
  })

  test('has colours only in a terminal', () => {
    const shown = output({ tty: true, colour: true })
    shown.out.list(rows, list)
    expect(shown.stdout.text).toContain('\x1b[2m')
    const piped = output({ colour: true })
    piped.out.list(rows, list)
    expect(piped.stdout.text).not.toContain('\x1b')
  })
})

test.each([
  [0, 'now'],
  [59_999, '59 s ago'],
  [60_000, '1 min ago'],
  [7_200_000, '2 h ago'],
  [3 * 86_400_000, '3 d ago'],
  [40 * 86_400_000, '1970-01-01'],
])('formats %i ms ago as "%s"', (passed, words) => {
  expect(formatAgo(0, passed)).toBe(words)
})

describe('progress', () => {
  function createFakeClock() {
    let now = 0
    let due: { at: number; run: () => void }[] = []
    const fakeClock: Clock = {
      now: () => now,
      after(delay, run) {
        const entry = { at: now + delay, run }
        due.push(entry)
        return () => {
          due = due.filter(one => one !== entry)
        }
      },
    }
    return {
      fakeClock,
      pass(ms: number) {
        now += ms
        for (const entry of due.filter(({ at }) => at <= now)) {
          due = due.filter(one => one !== entry)
          entry.run()
        }
      },
    }
  }

  test('shows nothing before 150 ms, and clears its line at the end', () => {
    const stream = createSink(true)
    const { fakeClock, pass } = createFakeClock()
    const progress = terminalProgress(stream, fakeClock)
    progress.spin('reading')
    pass(149)
    progress.end()
    pass(1_000)
    expect(stream.text).toBe('')
    progress.spin('reading')
    pass(150)
    expect(stream.text).toContain('reading')
    progress.end()
    expect(stream.text.endsWith('\r\x1b[2K')).toBe(true)
  })

  test.each(attacks)('strips control sequences from a name: %s', (_name, planted, remaining) => {
    const stream = createSink(true)
    const { fakeClock, pass } = createFakeClock()
    const progress = terminalProgress(stream, fakeClock)
    progress.spin(`asking ${planted}\nbelow`)
    pass(150)
    progress.end()
    expect(stream.text).toBe(`\r\x1b[2K  ⠋ asking ${remaining} below\r\x1b[2K`)
  })

  test('a bar shows the count, rate and remaining time', () => {
    const line = progressLine(
      { label: 'papers', done: 1012, total: 1400, unit: 'docs', sinceMs: 0, doneBefore: 0 },
      1_250,
      0,
    )
    expect(line).toBe('  papers  █████████████████████░░░░░░░░░  1,012/1,400  810 docs/s  00:01 left')
  })

  test('the rate of work that had begun before counts only what was done since then', () => {
    const line = progressLine(
      { label: 'embedding', done: 600, total: 1000, unit: 'chunks', sinceMs: 0, doneBefore: 500 },
      10_000,
      0,
    )
    expect(line).toMatch(/ 600\/1,000 {2}10 chunks\/s {2}00:40 left$/)
  })

  test('permanent lines are printed above it', () => {
    const stream = createSink(true)
    const { fakeClock, pass } = createFakeClock()
    const progress = terminalProgress(stream, fakeClock)
    progress.spin('reading')
    pass(200)
    progress.above(() => stream.write('stays\n'))
    expect(stream.text).toMatch(/reading\r\x1b\[2Kstays\n\r\x1b\[2K.*reading$/)
    progress.end()
  })
})

describe('command errors', () => {
  const statuses: [ErrorCode, number][] = [
    ['validation_error', 1],
    ['internal_error', 1],
    ['payload_too_large', 1],
    ['empty_document', 1],
    ['unauthorized', 3],
    ['forbidden', 3],
    ['kb_name_taken', 5],
    ['not_found', 4],
    ['rate_limited', 6],
    ['hybrid_not_supported', 6],
    ['data_api_error', 6],
    ['draining', 6],
  ]
  test.each(statuses)('%s ends with %i', (code, status) => {
    expect(exitStatus(new WbError(code, 'x'))).toBe(status)
  })

  test('maps usage errors, interruptions, unreachable runtimes and defects to exit statuses', () => {
    const ends = [new UsageError('x'), new Interrupted(), new Unreachable('x', 'y'), new Error('x')]
    expect(ends.map(exitStatus)).toEqual([2, 130, 6, 1])
  })

  test('prints an error in three parts, without control sequences of the server', () => {
    const error = new WbError('not_found', 'no \x1b[31mthing', {
      requestId: '01X',
      hint: 'look \x1b]0;x\x07there',
    })
    expect(reportLines(toReport(error), styleFor(false))).toEqual([
      '  ✗ No thing (not_found, request 01X)',
      '    look there',
    ])
  })

  test("prints a runtime's message on one line, so it cannot imitate suggested commands", () => {
    const message = 'no thing\n    wb login https://evil.example'
    const reportOf = (facts: object) =>
      reportLines(toReport(new WbError('not_found', message, { hint: 'h', ...facts })), styleFor(false))
    expect(reportOf({ wireStatus: 404 })).toEqual([
      '  ✗ No thing wb login https://evil.example (not_found)',
      '    h',
    ])
    expect(reportOf({})).toHaveLength(3)
  })

  test('joins suggestions into one JSON hint with single separators', () => {
    const next = ['Ask for a key.', '  wb kb list', 'wb --help']
    expect(JSON.parse(reportJson({ kind: 'usage', message: 'm', next }))).toEqual({
      error: { code: 'usage', message: 'm', hint: 'Ask for a key. wb kb list; wb --help' },
    })
  })
})

test.each([
  ['demoo', 'demo'],
  ['Handbok', 'handbook'],
  ['x', undefined],
  ['papers', 'papers'],
])('for %s, the nearest match is %s', (typed, meant) => {
  expect(nearestMatch(typed, ['demo', 'handbook', 'papers'])).toBe(meant)
})
