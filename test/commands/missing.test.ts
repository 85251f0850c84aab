import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { committedManifest } from '../../scripts/manifest.mjs'
import { inFakeTerminal, inTerminal, withoutSequences } from './terminal.ts'
import { place, placesLike } from './wb.ts'

interface Listed {
  args: Record<string, { required?: boolean }>
  flags: Record<string, unknown>
}

const timeout = 60_000
const down = '\x1b[B'
const { commands } = JSON.parse(committedManifest()) as { commands: Record<string, Listed> }
const requiring = Object.entries(commands).flatMap(([id, { args }]) => {
  const first = Object.entries(args).find(([, { required }]) => required)?.[0]
  return first === undefined ? [] : [[id.replaceAll(':', ' '), first.toUpperCase()] as const]
})
/** Commands that are about one thing that is there, and must not take the only one for it. */
const ending = /(?:delete|revoke|remove|cancel|rotate|disallow)$/

/** What is typed at each question, once and in this order. */
function answers(...all: [words: string, typed: string][]) {
  const left = [...all]
  return (text: string) =>
    left[0] && withoutSequences(text).includes(left[0][0]) ? left.shift()?.[1] : undefined
}

describe('in a pipe, what a command needs and was not told is a usage error that names it', () => {
  test.each(requiring)('wb %s without %s', { timeout }, async (command, missing) => {
    const { status, stdout, stderr } = await place().wb(command.split(' '))
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(`✗ ${missing} is missing`)
  })

  test('every command that ends something asks what', () => {
    const ends = Object.keys(commands)
      .map(id => id.replaceAll(':', ' '))
      .filter(id => ending.test(id))
    expect(ends.length).toBeGreaterThan(10)
    expect(requiring.map(([command]) => command)).toEqual(expect.arrayContaining(ends))
  })
})

describe('in a terminal, what there is can be chosen', { timeout }, () => {
  test('a service, by its name and the beginning of its id', async () => {
    const here = place()
    const made = await here.wb(['services', 'create', 'mine', '--preset', 'recursive-char-500'])
    const id = made.stdout.trim()
    const { status, text } = await inTerminal(here, ['services', 'show', '--type', 'chunking'], {
      answer: answers(['Which service?', 'mine\r']),
    })
    const shown = withoutSequences(text)
    expect(status).toBe(0)
    expect(shown).toContain(`mine (${id.slice(0, 8)})`)
    expect(shown).toMatch(new RegExp(`id +${id}`))
  })

  test('a key, and the only one is not taken for meant', async () => {
    const here = place()
    expect(await here.wb(['keys', 'create', 'ci'])).toMatchObject({ status: 0 })
    const { status, text } = await inTerminal(here, ['keys', 'revoke'], {
      answer: answers(['Which key?', '\r'], ['to confirm:', 'ci\r']),
    })
    expect(status).toBe(0)
    expect(withoutSequences(text)).toMatch(/Which key\?[\s\S]*ci \([a-z0-9]{12}\)/)
    expect((await here.wb(['keys', 'list', '--json'])).stdout).not.toContain('"revokedAt":null')
  })

  test('a document, of the knowledge base that is chosen first', async () => {
    const here = place()
    for (const name of ['handbook', 'kitchen'])
      await here.wb(['kb', 'ingest', name, '-', '--create', '--name', `${name}.md`], { input: `# ${name}\n` })
    const { status, text } = await inTerminal(here, ['documents', 'show'], {
      answer: answers(['Which knowledge base', `${down}\r`], ['Which document?', '\r']),
    })
    expect(status).toBe(0)
    expect(withoutSequences(text)).toMatch(/file +kitchen\.md/)
  })

  test('a knowledge base to put files into may be a new one', async () => {
    const here = place()
    await here.wb(['kb', 'create', 'handbook'])
    const { status, text } = await inTerminal(here, ['kb', 'ingest'], {
      answer: answers(
        ['Which knowledge base?', `${down}\r`],
        ['NAME (', 'notes\r'],
        ['Which file or folder?', `${here.home}/nothing\r`],
        ['Create it?', 'n\r'],
      ),
    })
    expect(status).toBe(4)
    expect(withoutSequences(text)).toContain('There is no knowledge base "notes"')
  })

  test('an empty answer is asked for again, and ~ is the home folder', async () => {
    const here = place()
    writeFileSync(join(here.home, 'a.md'), '# Keys\n')
    await here.wb(['kb', 'create', 'handbook'])
    const { status, text } = await inTerminal(here, ['kb', 'ingest', 'handbook'], {
      answer: answers(['Which file or folder?', ' \r'], ['Type an answer', '\b~/a.md\r']),
    })
    expect(status, text).toBe(0)
    expect(withoutSequences(text)).toContain('1 added')
  })

  test('where there is nothing to choose from, that is said', async () => {
    const here = place()
    await here.wb(['workspaces', 'create', 'demo'])
    const { status, text } = await inFakeTerminal(here, ['mcp', 'servers', 'remove'])
    expect(status).toBe(2)
    expect(withoutSequences(text)).toContain('SERVER is missing, and there is no MCP server to choose')
  })
})

describe('one more of a name', { timeout }, () => {
  const twins = [
    ['services', 'create', 'twin', '--preset', 'recursive-char-500'],
    ['agents', 'create', 'twin', '--prompt', 'Be brief.'],
    ['filters', 'create', 'twin', '--kb', 'handbook', '--where', 'lang=en'],
    ['mcp', 'servers', 'add', 'twin', 'http://127.0.0.1:9/mcp'],
  ]

  const furnished = placesLike(async ({ wb }) => {
    await wb(['kb', 'create', 'handbook'])
  })

  test.each(twins.map(words => [words.slice(0, -1).join(' '), words]))('%s', async (_line, words) => {
    const here = await furnished()
    const first = await here.wb(words)
    expect(first.stderr).not.toContain('another')
    const second = await here.wb(words)
    expect(second).toMatchObject({ status: 0, stderr: expect.stringMatching(/! another .* is named twin/) })
    expect(second.stdout).not.toBe(first.stdout)
    const declined = await inTerminal(here, words, {
      answer: answers(['create a second one?', 'n\r']),
    })
    expect(declined.status).toBe(2)
    expect(withoutSequences(declined.text)).toContain('Nothing was created')
  })
})
