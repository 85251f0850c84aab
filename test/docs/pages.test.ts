import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startChatServer } from '../fakes/chat-server.ts'
import { startMcpServer } from '../fakes/mcp-server.ts'
import { createReaderSandbox, endServers } from './reader-sandbox.ts'

const pages = [
  'README.md',
  ...readdirSync('docs')
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`),
]

/**
 * Matches a block. A block that is not run has a comment with the reason. `.ci/run` runs the two marked blocks of
 * the README.
 */
const block = /(?:<!-- (not run: \S.*|main|test) -->\n)?```sh\n([\s\S]*?)```/g

function blocksOf(page: string): { lines: string; why: string | undefined }[] {
  return [...readFileSync(page, 'utf8').matchAll(block)].map(([, why, lines]) => ({ lines: lines!, why }))
}

const testedPages = pages.filter(page => blocksOf(page).some(({ why }) => !why))

test('at least five pages have commands', () => {
  expect(testedPages.length).toBeGreaterThanOrEqual(5)
})

/** Returns true if a page has enough commands to be faster with a running server, and does not start one itself. */
function isQuickerServed(blocks: { lines: string }[]): boolean {
  const typed = blocks.map(({ lines }) => lines).join('')
  return !typed.includes('wb serve') && (typed.match(/^(?:npx )?wb /gm) ?? []).length > 6
}

/** Starts a model, in place of Ollama, that searches before it answers. */
async function startModel(): Promise<{ url: string; answers: () => number }> {
  const server = await startChatServer()
  onTestFinished(() => server.close())
  let answers = 0
  server.respond(({ line, body }) => {
    if (!line.endsWith('/chat/completions')) return undefined
    const { role, content } = (body.messages as { role: string; content: string }[]).at(-1)!
    if (role === 'user') return { toolCalls: [{ name: 'search_kb', arguments: { query: content } }] }
    answers++
    return { text: 'It stands there [1].' }
  })
  return { url: server.url, answers: () => answers }
}

/** Matches lines that ask an agent. */
const asking = /\bwb (?:ask|agents chat) |^curl .*\/(?:messages|chat\/completions)/gm

test.each(testedPages)('%s: every command works, from top to bottom', { timeout: 120_000 }, async page => {
  const { env, folder, home } = await createReaderSandbox()
  onTestFinished(() => endServers(home))
  const { url: ollama, answers } = await startModel()
  const tools = await startMcpServer()
  const type = async (lines: string, cwd: string) => {
    const typed = spawn('bash', ['-euo', 'pipefail', '-c', lines], {
      cwd,
      env: { ...env, OLLAMA_BASE_URL: ollama },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    typed.stderr.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    const [status] = await once(typed, 'exit')
    expect(status, `${lines}\n${stderr}`).toBe(0)
  }
  const blocks = blocksOf(page).filter(({ why }) => !why)
  if (isQuickerServed(blocks)) await type('wb serve', home)
  for (const { lines } of blocks) await type(lines.replaceAll('http://127.0.0.1:9000/mcp', tools.url), folder)
  const questions = blocks.flatMap(({ lines }) => lines.match(asking) ?? [])
  expect(answers(), 'questions that the model answered').toBe(questions.length)
})

test.each(pages)('%s: every link target exists', page => {
  const targets = [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, to]) => to!)
  const missing = targets.map(to => join(dirname(page), to)).filter(path => !existsSync(path))
  expect(missing).toEqual([])
})
