import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { committedManifest, manifestText } from '../../scripts/manifest.mjs'

interface Listed {
  summary?: string
  examples?: string[]
  flags: Record<string, { char?: string; summary?: string }>
  args: Record<string, { description?: string }>
}

const commands = Object.entries(
  (JSON.parse(committedManifest()) as { commands: Record<string, Listed> }).commands,
)
/** Sixty before formatting, and an allowance for formatting. */
const lineMax = 75

describe('commands', () => {
  test('the committed manifest is current: run `npm run manifest`', async () => {
    expect(committedManifest()).toBe(await manifestText())
  })

  test.each(commands)(
    'the help of %s starts with one sentence and has examples',
    (id, { summary, examples = [] }) => {
      expect(summary).toMatch(/^[^.\n]{10,60}$/)
      expect(examples.length).toBeGreaterThanOrEqual(2)
      for (const example of examples) expect(example).toContain(`wb ${id.replaceAll(':', ' ')}`)
    },
  )

  test.each(commands)('%s describes every flag and argument', (_id, { flags, args }) => {
    const silent = Object.entries(flags).filter(([, { summary }]) => !summary)
    const mute = Object.entries(args).filter(([, { description }]) => !description)
    expect([...silent, ...mute].map(([name]) => name)).toEqual([])
  })

  test.each(['agents:update', 'services:update', 'mcp:servers:update'])(
    'the help of %s shows no defaults of flags, because only flags that are set change a field',
    id => {
      const { flags } = Object.fromEntries(commands)[id]!
      expect(Object.values(flags).filter(({ summary }) => summary?.endsWith(']'))).toEqual([])
    },
  )

  test('every command has the global flags', () => {
    const everywhere = ['workspace', 'url', 'data-dir', 'config', 'json', 'quiet', 'debug', 'no-color']
    for (const [id, { flags }] of commands)
      expect([id, Object.keys(flags)]).toEqual([id, expect.arrayContaining(everywhere)])
  })

  test('every topic has a description', () => {
    const { oclif } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      oclif: { topics: Record<string, unknown> }
    }
    const topics = new Set(commands.flatMap(([id]) => topicsOf(id)))
    expect(Object.keys(oclif.topics).sort()).toEqual([...topics].sort())
  })

  test(`a command has at most ${lineMax} lines, because its logic belongs in tested modules`, () => {
    const long = readdirSync('commands', { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts'))
      .map(name => [name, readFileSync(join('commands', name), 'utf8').split('\n').length - 1] as const)
      .filter(([, lines]) => lines > lineMax)
    expect(long).toEqual([])
  })
})

/** Returns the topic of a command and its parent topics. */
function topicsOf(id: string): string[] {
  const words = id.split(':').slice(0, -1)
  return words.map((_, at) => words.slice(0, at + 1).join(':'))
}
