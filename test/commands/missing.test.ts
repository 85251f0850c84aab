import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { committedManifest } from '../../scripts/manifest.mjs'
import { createSandbox, sandboxFactory } from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

interface Listed {
  args: Record<string, { required?: boolean }>
  flags: Record<string, unknown>
}

const timeout = 60_000
const arrowDown = '\x1b[B'
const { commands } = JSON.parse(committedManifest()) as { commands: Record<string, Listed> }
const requiredArguments = Object.entries(commands).flatMap(([id, { args }]) => {
  const first = Object.entries(args).find(([, { required }]) => required)?.[0]
  return first === undefined ? [] : [[id.replaceAll(':', ' '), first.toUpperCase()] as const]
})
/** Commands that end or delete a resource, and must not select the only one by default. */
const endingCommand = /(?:delete|revoke|remove|cancel|rotate|disallow)$/

/** Types each answer once, in order, when its prompt appears. */
function answerPrompts(...all: [words: string, typed: string][]) {
  const remaining = [...all]
  return (text: string) =>
    remaining[0] && stripSequences(text).includes(remaining[0][0]) ? remaining.shift()?.[1] : undefined
}

describe('a missing argument in a pipe is a usage error that names it', () => {
  test.each(requiredArguments)('wb %s without %s', { timeout }, async (command, missing) => {
    const { status, stdout, stderr } = await createSandbox().wb(command.split(' '))
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(`✗ ${missing} is missing`)
  })

  test('every command that ends or deletes a resource requires an argument', () => {
    const ends = Object.keys(commands)
      .map(id => id.replaceAll(':', ' '))
      .filter(id => endingCommand.test(id))
    expect(ends.length).toBeGreaterThan(10)
    expect(requiredArguments.map(([command]) => command)).toEqual(expect.arrayContaining(ends))
  })
})

describe('a missing argument in a terminal is selected from a list', { timeout }, () => {
  test('selects a service by its name, with the start of its ID', async () => {
    const sandbox = createSandbox()
    const created = await sandbox.wb(['services', 'create', 'mine', '--preset', 'recursive-char-500'])
    const id = created.stdout.trim()
    const { status, text } = await runInTerminal(sandbox, ['services', 'show', '--type', 'chunking'], {
      answer: answerPrompts(['Which service?', 'mine\r']),
    })
    const shown = stripSequences(text)
    expect(status).toBe(0)
    expect(shown).toContain(`mine (${id.slice(0, 8)})`)
    expect(shown).toMatch(new RegExp(`id +${id}`))
  })

  test('asks for a key even if there is only one', async () => {
    const sandbox = createSandbox()
    expect(await sandbox.wb(['keys', 'create', 'ci'])).toMatchObject({ status: 0 })
    const { status, text } = await runInTerminal(sandbox, ['keys', 'revoke'], {
      answer: answerPrompts(['Which key?', '\r'], ['to confirm:', 'ci\r']),
    })
    expect(status).toBe(0)
    expect(stripSequences(text)).toMatch(/Which key\?[\s\S]*ci \([a-z0-9]{12}\)/)
    expect((await sandbox.wb(['keys', 'list', '--json'])).stdout).not.toContain('"revokedAt":null')
  })

  test('selects a document after its knowledge base', async () => {
    const sandbox = createSandbox()
    for (const name of ['handbook', 'kitchen'])
      await sandbox.wb(['kb', 'ingest', name, '-', '--create', '--name', `${name}.md`], {
        input: `# ${name}\n`,
      })
    const { status, text } = await runInTerminal(sandbox, ['documents', 'show'], {
      answer: answerPrompts(['Which knowledge base', `${arrowDown}\r`], ['Which document?', '\r']),
    })
    expect(status).toBe(0)
    expect(stripSequences(text)).toMatch(/file +kitchen\.md/)
  })

  test('offers to create a knowledge base for an ingest', async () => {
    const sandbox = createSandbox()
    await sandbox.wb(['kb', 'create', 'handbook'])
    const { status, text } = await runInTerminal(sandbox, ['kb', 'ingest'], {
      answer: answerPrompts(
        ['Which knowledge base?', `${arrowDown}\r`],
        ['NAME (', 'notes\r'],
        ['Which file or folder?', `${sandbox.home}/nothing\r`],
        ['Create it?', 'n\r'],
      ),
    })
    expect(status).toBe(4)
    expect(stripSequences(text)).toContain('There is no knowledge base "notes"')
  })

  test('repeats the prompt after an empty answer, and expands ~ to the home folder', async () => {
    const sandbox = createSandbox()
    writeFileSync(join(sandbox.home, 'a.md'), '# Keys\n')
    await sandbox.wb(['kb', 'create', 'handbook'])
    const { status, text } = await runInTerminal(sandbox, ['kb', 'ingest', 'handbook'], {
      answer: answerPrompts(['Which file or folder?', ' \r'], ['Type an answer', '\b~/a.md\r']),
    })
    expect(status, text).toBe(0)
    expect(stripSequences(text)).toContain('1 added')
  })

  test('reports that there is nothing to choose from', async () => {
    const sandbox = createSandbox()
    await sandbox.wb(['workspaces', 'create', 'demo'])
    const { status, text } = await runInFakeTerminal(sandbox, ['mcp', 'servers', 'remove'])
    expect(status).toBe(2)
    expect(stripSequences(text)).toContain('SERVER is missing, and there is no MCP server to choose')
  })
})

describe('a second resource with the same name', { timeout }, () => {
  const twins = [
    ['services', 'create', 'twin', '--preset', 'recursive-char-500'],
    ['agents', 'create', 'twin', '--prompt', 'Be brief.'],
    ['filters', 'create', 'twin', '--kb', 'handbook', '--where', 'lang=en'],
    ['mcp', 'servers', 'add', 'twin', 'http://127.0.0.1:9/mcp'],
  ]

  const sandboxWithBase = sandboxFactory(async ({ wb }) => {
    await wb(['kb', 'create', 'handbook'])
  })

  test.each(twins.map(words => [words.slice(0, -1).join(' '), words]))('%s', async (_line, words) => {
    const sandbox = await sandboxWithBase()
    const first = await sandbox.wb(words)
    expect(first.stderr).not.toContain('another')
    const second = await sandbox.wb(words)
    expect(second).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/Another .* is named twin, so nothing was created/),
    })
    const declined = await runInTerminal(sandbox, words, {
      answer: answerPrompts(['create a second one?', 'n\r']),
    })
    expect(declined.status).toBe(2)
    expect(stripSequences(declined.text)).toContain('so nothing was created')
  })
})
