import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Conversation, Message } from '../../src/contract/conversations.ts'
import { type ChatRequest, type ChatStep, startChatServer } from '../fakes/chat-server.ts'
import { startChat } from './chat-terminal.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'

type ReplyScript = (question: string, isAfterTool: boolean) => ChatStep

const keys = { 'keys.md': '# Keys\n\nKeys are rotated by replacement.\n' }

/** Creates documents, and an agent that answers from them with a fake model. Calls of `list_kbs` need approval. */
async function sandboxWithAgent(
  say: ReplyScript,
  documents: Record<string, string> = keys,
): Promise<Sandbox> {
  const sandbox = createSandbox()
  const model = await startChatServer()
  onTestFinished(() => model.close())
  model.respond(request => scriptedReply(request, say))
  mkdirSync(join(sandbox.home, 'docs'))
  for (const [name, text] of Object.entries(documents)) writeFileSync(join(sandbox.home, 'docs', name), text)
  for (const line of [
    'kb ingest handbook docs --create',
    `services create fake --type llm --provider ollama --model llama3.2 --endpoint ${model.url}`,
    'kb create empty',
    'agents update Maven --llm fake --kb handbook --rule list_kbs=ask',
  ]) {
    const { status, stderr } = await sandbox.wb(line.split(' '))
    expect(status, stderr).toBe(0)
  }
  return sandbox
}

function scriptedReply({ line, body }: ChatRequest, say: ReplyScript): ChatStep | undefined {
  if (!line.endsWith('/chat/completions') || !body.stream) return undefined
  const messages = body.messages as { role: string; content: string }[]
  const question = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  return say(question, messages.at(-1)?.role === 'tool')
}

test('a conversation continues after the runtime is killed and restarted', {
  timeout: 120_000,
}, async () => {
  let isSilent = true
  const sandbox = await sandboxWithAgent((question, isAfterTool) => {
    const tool = question.startsWith('how') ? 'search_kb' : question.startsWith('which') ? 'list_kbs' : ''
    if (tool && !isAfterTool)
      return { text: 'Let me look.', toolCalls: [{ name: tool, arguments: { query: 'keys' } }] }
    if (question.startsWith('tell'))
      return { text: 'A long story begins here.\n\nIt ends well.', ...(isSilent && { silentAfter: 4 }) }
    return { text: tool === 'search_kb' ? 'By **replacement** [1].' : 'One: the handbook.' }
  })
  const first = await sandbox.spawnServe()
  const { type, shows, ended } = startChat(sandbox, ['maven'])
  /** Waits for the end of an answer. Until then, Enter sends nothing. */
  const answered = async (words: string) => {
    await shows(words)
    await shows('/help')
  }
  await shows('ask Maven')

  type('how are keys rotated?\r')
  await shows('⚙1 search_kb')
  await shows('By replacement [1].')
  await answered('[1] Keys · chunk 0')

  type('/model lama3.2\r')
  await shows('did you mean llama3.2?')
  type('/kb h')
  await shows('  handbook')
  type('\t\r')
  await shows('answers come from handbook from now on')
  type('/kb all\r')
  await shows('answers come from all knowledge bases from now on')

  type('which bases are there?\r')
  await shows('wants to use list_kbs')
  await shows('119 s left')
  type('o')
  await shows('⚙2 list_kbs')
  await answered('One: the handbook.')

  type('tell me more\r')
  await shows('A long story')
  first.process.kill('SIGKILL')
  await first.ended
  await shows('reconnecting…')
  isSilent = false
  const port = ['--port', new URL(first.url).port]
  const second = await sandbox.spawnServe(port)
  await shows('lost during the answer; /retry asks again')
  await shows('the runtime is available again')
  type('/retry\r')
  await answered('It ends well.')
  type('/versions 1\r')
  await shows('version 1 of 2')
  type('/versions\r')
  await shows('tell me more → A long story begins here.')
  type('\x1b[B\r')
  await shows('version 2 of 2')
  type('/rename A story\r')
  await shows('renamed the conversation to A story')

  second.process.kill('SIGKILL')
  await second.ended
  type('and what else?\r')
  await shows('your message will be sent')
  await sandbox.serve(port)
  await shows('the runtime is available again')
  await answered('One: the handbook.')
  type('/quit\r')
  expect(await ended).toBe(0)

  const { stdout } = await sandbox.wb(['conversations', 'show', '--json'])
  const { messages, knowledgeBaseIds } = JSON.parse(stdout) as Conversation & { messages: Message[] }
  expect(knowledgeBaseIds).toHaveLength(2)
  expect(messages.map(({ role, content }) => `${role}: ${content}`)).toEqual([
    'user: how are keys rotated?',
    'agent: By **replacement** [1].',
    'user: which bases are there?',
    'agent: One: the handbook.',
    'user: tell me more',
    'agent: A long story begins here.\n\nIt ends well.',
    'user: and what else?',
    'agent: One: the handbook.',
  ])
})

test('a chat names the knowledge bases of the conversation that it continues', {
  timeout: 60_000,
}, async () => {
  const sandbox = await sandboxWithAgent(() => ({ text: 'By replacement.' }))
  await sandbox.serve()
  const first = startChat(sandbox, ['maven'])
  await first.shows('Maven · handbook')
  first.type('/kb empty\r')
  await first.shows('answers come from empty from now on')
  first.type('how are keys rotated?\r')
  await first.shows('Maven · empty · llama3.2')
  first.type('/quit\r')
  expect(await first.ended).toBe(0)

  const other = startChat(sandbox, ['maven'])
  await other.shows('Maven · handbook')
  other.type('/history\r')
  await other.shows('how are keys rotated?')
  other.type('\r')
  await other.shows('Maven · empty · llama3.2')
  other.type('/quit\r')
  expect(await other.ended).toBe(0)

  const again = startChat(sandbox, ['maven', '--continue'])
  await again.shows('Maven · empty · llama3.2')
  again.type('/quit\r')
  expect(await again.ended).toBe(0)
})

const pages = {
  'rotation.md':
    '# Rotating keys\n\nKeys are rotated by replacement. wb keys rotate NAME --grace 24h creates a new token. The old token keeps working until its grace period ends.\n',
  'tokens.md':
    '# Tokens\n\nThe token of a key is printed once. --write FILE writes it to a file that only you can read.\n',
  'ci.md':
    '# Continuous integration\n\nA job reads its key from the secret WB_API_KEY. When keys are rotated, replace the secret during the grace period.\n',
}
const answer = `\`wb keys rotate ci --grace 24h\` creates a new token. The old one keeps working for 24 hours [1].

- The new token is printed **once**. \`--write FILE\` writes it to a file that only you can read [3].
- In a CI job, put the new token into the secret \`WB_API_KEY\` while the old one still works [2].`

const recording = /(?<=<!-- recorded[^\n]*-->\n```text\n)[\s\S]*?(?=```\n<!-- end of the recording -->)/

test('the chat in the README matches a recorded session', async () => {
  const sandbox = await sandboxWithAgent(
    (_, isAfterTool) =>
      isAfterTool
        ? { text: answer, usage: { prompt_tokens: 1_873, completion_tokens: 241, total_tokens: 2_114 } }
        : {
            text: 'Let me look.',
            toolCalls: [{ name: 'search_kb', arguments: { query: 'how are keys rotated?' } }],
            usage: null,
          },
    pages,
  )
  const { type, shows, lines } = startChat(sandbox, ['maven'])
  await shows('ask Maven')
  type('how are keys rotated?\r')
  await shows('2,114 tokens')
  type('and how do I revoke one?')
  await shows('revoke one?')
  await shows('/help')
  const shown = lines()
  const text = shown
    .slice(shown.indexOf(' you    how are keys rotated?'))
    .join('\n')
    .trimEnd()
    .replace(/\d+(?:\.\d)? m?s$/m, '12 ms')
  const readme = readFileSync('README.md', 'utf8')
  expect(readme).toMatch(recording)
  // `vitest -u` updates the README.
  await expect(readme.replace(recording, () => `${text}\n`)).toMatchFileSnapshot('../../README.md')
})
