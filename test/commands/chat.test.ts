import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type ChatRuntime,
  chatRuntime,
  citationMetadata,
  ids,
  type ScriptedTurn,
  streamWords,
} from '../fakes/chat-runtime.ts'
import { imageBytes, imageOf } from '../harness/images.ts'
import { startChat } from './chat-terminal.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const answer = 'Both laws hold together [1].\n\n```ts\nconst a = 1\n```\n'
const noModel = {
  status: 503,
  code: 'llm_credential_missing',
  message: 'LLM service "x" lacks its key',
  hint: 'Set KEY.',
}
const call = { id: 't1', name: 'mcp:files:write', arguments: '{"path":"/tmp/x"}' }

async function answerWithText(turn: ScriptedTurn): Promise<void> {
  await streamWords(turn, answer)
  await turn.finish(answer, citationMetadata())
}

/** A model that calls a tool, which needs approval, before it answers. */
async function answerWithTool(turn: ScriptedTurn): Promise<void> {
  await turn.sendToken('Let me see.')
  await turn.sendEvent('token-reset', {})
  await turn.sendEvent('tool-call', { toolCalls: [call] })
  const decision = turn.userMessage.approvals ? await turn.requestApproval(call) : 'denied'
  const outcome = decision === 'once' ? 'success' : 'denied'
  await turn.sendEvent('tool-result', {
    toolCallId: 't1',
    name: call.name,
    content: decision,
    outcome,
    durationMs: 12,
  })
  await answerWithText(turn)
}

async function createChatSandbox(
  play?: ChatRuntime['play'],
): Promise<{ sandbox: Sandbox; runtime: ChatRuntime }> {
  const runtime = await chatRuntime()
  onTestFinished(() => runtime.close())
  if (play) runtime.play = play
  const sandbox = createSandbox()
  sandbox.env.WB_URL = runtime.url
  return { sandbox, runtime }
}

describe('without a terminal', () => {
  test('reads a question from stdin, and prints the answer with its sources', async () => {
    const { sandbox, runtime } = await createChatSandbox(answerWithTool)
    const { status, stdout, stderr } = await sandbox.wb(['agents', 'chat', 'maven'], {
      input: 'which laws?\n',
    })
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: `${answer}\n\n[1] aeroelastic models of heated high speed aircraft · chunk 2\n[2] aeroelastic models of heated high speed aircraft · page 4\n`,
    })
    expect(stderr).toBe('  mcp:files:write  denied  12 ms\n    denied\n')
    expect(runtime.sentMessages).toEqual([{ content: 'which laws?' }])
  })

  test('names the sentences that no source supports on stderr', async () => {
    const { sandbox } = await createChatSandbox(async turn => {
      const text = 'It is true [1]. It is **invented** [2].'
      const unsupported = JSON.stringify([{ start: 16, end: text.length }])
      await turn.finish(text, { ...citationMetadata(), unsupported })
    })
    const { stdout, stderr } = await sandbox.wb(['ask', 'which laws?'])
    expect(stdout).toContain('It is true [1]. It is **invented** [2].\n')
    expect(stderr).toContain('  1 sentence is not supported by the sources:\n    It is **invented**.\n')
    const json = await sandbox.wb(['ask', 'which laws?', '--json'])
    const done = JSON.parse(json.stdout.trim().split('\n').at(-1)!)
    expect(done.data.metadata.unsupported).toBe('[{"start":16,"end":39}]')
  })

  test('--image sends files with the media type of their content', async () => {
    const { sandbox, runtime } = await createChatSandbox()
    writeFileSync(join(sandbox.home, 'a.png'), imageBytes('image/png'))
    writeFileSync(join(sandbox.home, 'b.txt'), imageBytes('image/webp'))
    const { status } = await sandbox.wb(['ask', '--image', 'a.png', '--image', 'b.txt', 'which is it?'])
    expect(status).toBe(0)
    const images = [imageOf('image/png'), imageOf('image/webp')]
    expect(runtime.sentMessages).toEqual([{ content: 'which is it?', images }])
  })

  test.each<[what: string, files: string[], words: string]>([
    ['a missing file', ['nope.png'], '"nope.png" cannot be read: there is no such file'],
    ['a folder', ['.'], '"." cannot be read: it is a folder'],
    ['a large file', ['large.png'], '"large.png" is too large: an image can have at most 5.0 MB'],
    ['another format', ['a.svg'], '"a.svg" is not an image in a supported format'],
    ['five files', Array(5).fill('a.png'), 'A message can have at most 4 images, not 5'],
  ])('--image rejects %s, and sends no question', async (_, files, words) => {
    const { sandbox, runtime } = await createChatSandbox()
    writeFileSync(join(sandbox.home, 'a.png'), imageBytes('image/png'))
    writeFileSync(join(sandbox.home, 'a.svg'), '<svg/>')
    writeFileSync(join(sandbox.home, 'large.png'), imageBytes('image/png', 5_000_001))
    const flags = files.flatMap(file => ['--image', file])
    const { status, stderr } = await sandbox.wb(['ask', 'why?', ...flags])
    expect(status).toBe(2)
    expect(stderr).toContain(words)
    expect(runtime.sentMessages).toEqual([])
  })

  test.each([
    ['show', 'what is this? [image 1: image/png, 1.5 KB]'],
    ['export', 'what is this?\n\n[image 1: image/png, 1.5 KB]'],
  ])('wb conversations %s lists the images of a message', async (command, words) => {
    const { sandbox, runtime } = await createChatSandbox()
    await sandbox.wb(['ask', 'what is this?'])
    Object.assign(runtime.storedMessages[0]!, {
      images: [{ index: 0, mediaType: 'image/png', bytes: 1_500 }],
    })
    expect((await sandbox.wb(['conversations', command])).stdout).toContain(words)
  })

  test('does not print reasoning', async () => {
    const { sandbox } = await createChatSandbox(async turn => {
      await turn.sendEvent('reasoning', { delta: 'Two and two.' })
      await answerWithText(turn)
    })
    const { status, stdout, stderr } = await sandbox.wb(['ask', 'what is 2 + 2?'])
    expect({ status, stdout: stdout.slice(0, answer.length) }).toEqual({ status: 0, stdout: answer })
    expect(stdout + stderr).not.toContain('Two and two')
  })

  test.each([
    ['length', 'the answer is cut off: the model reached its output limit'],
    ['content_filter', 'a content filter of the provider stopped the answer'],
  ])('an answer that ended with %s counts as an answer, with a note on stderr', async (reason, note) => {
    const metadata = { finish_reason: reason }
    const { sandbox, runtime } = await createChatSandbox(turn => turn.finish('Half.', metadata))
    runtime.answerMetadata = metadata
    const streamed = await sandbox.wb(['ask', 'why?', '--agent', 'maven'])
    expect(streamed).toMatchObject({ status: 0, stdout: 'Half.\n', stderr: `  ${note}\n` })
    const whole = await sandbox.wb(['ask', 'why?', '--agent', 'maven', '--no-stream'])
    expect(whole).toMatchObject({ status: 0, stderr: `  ${note}\n` })
  })

  test('--json prints the events, and --no-stream prints one object', async () => {
    const { sandbox } = await createChatSandbox(answerWithText)
    const lines = (await sandbox.wb(['chat', 'maven', 'why?', '--json'])).stdout.trim().split('\n')
    const events = lines.map(line => JSON.parse(line) as { event: string })
    expect(events.map(({ event }) => event)).toEqual(['user-message', ...Array(11).fill('token'), 'done'])
    const whole = await sandbox.wb(['ask', 'why?', '--no-stream'])
    expect(JSON.parse(whole.stdout)).toMatchObject({
      user: { content: 'why?' },
      assistant: { content: 'Whole.' },
    })
    expect(whole.stderr).toBe('  using agent Maven; wb agents list shows the others\n')
  })

  test('prints passages instead of an answer if there is no model', async () => {
    const { sandbox, runtime } = await createChatSandbox()
    runtime.refusal = noModel
    const { status, stdout, stderr } = await sandbox.wb(['ask', 'why?'])
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout:
        'search results, not written by a model:\n\n[1] laws.md\n    A passage that was found.\n    laws.md · chunk 2\n',
    })
    expect(stderr).toMatch(
      /\n {2}no model is available: LLM service "x" lacks its key\n {2}Set KEY\.\n {2}With Ollama[^\n]*\n {2}wb services create llama [^\n]*\n {2}wb agents update Maven --llm llama\n[^\n]*KEY[^\n]*\n[^\n]*\n {2}wb search .why\?. --json[^\n]*\n$/,
    )
  })

  test.each([[], ['--no-stream']])(
    'explains once where to set the key of OpenRouter: %o',
    async (...form) => {
      const { sandbox, runtime } = await createChatSandbox()
      const hint = 'Set OPENROUTER_API_KEY where the runtime is started.'
      runtime.refusal = { ...noModel, hint }
      const { stderr } = await sandbox.wb(['ask', 'why?', ...form])
      expect(stderr.match(/OPENROUTER_API_KEY/g)).toHaveLength(1)
    },
  )

  test.each([
    [
      '--no-stream',
      /^ {2}✗ LLM service "x" lacks its key \(llm_credential_missing[^\n]*\n {4}Set KEY\.\n {4}With Ollama on this machine:\n {4}wb services create llama /,
    ],
    ['--json', /"hint":"Set KEY\. With Ollama on this machine: wb services create llama /],
  ])('%s explains how to set up a model if there is none', async (form, expected) => {
    const { sandbox, runtime } = await createChatSandbox()
    runtime.refusal = noModel
    const { status, stdout, stderr } = await sandbox.wb(['ask', 'why?', '--agent', 'maven', form])
    expect({ status, stderr }).toEqual({ status: 6, stderr: expect.stringMatching(expected) })
    expect(stdout).not.toContain('found')
  })

  test.each([
    ['a refusal', { status: 403, code: 'forbidden', message: 'not you' }, 3, 'not you'],
    ['a limit', { status: 429, code: 'rate_limited', message: 'later' }, 6, 'later'],
  ])('%s ends with the exit status of its error', async (_name, refusal, status, message) => {
    const { sandbox, runtime } = await createChatSandbox()
    runtime.refusal = refusal
    const ended = await sandbox.wb(['ask', 'why?'])
    expect(ended).toMatchObject({ status, stdout: '' })
    expect(ended.stderr.toLowerCase()).toContain(message)
  })

  test('a failed answer ends with a failure status in every output format, without a defect report', async () => {
    const metadata = { finish_reason: 'error', error_message: 'The model has left' }
    const { sandbox, runtime } = await createChatSandbox(turn =>
      turn.sendEvent('error', { content: '', metadata }),
    )
    runtime.answerMetadata = metadata
    for (const form of [[], ['--json'], ['--no-stream']]) {
      const { status, stdout, stderr } = await sandbox.wb(['ask', 'why?', ...form])
      expect({ form, status, isEmpty: stdout === '' }).toEqual({
        form,
        status: 1,
        isEmpty: form.length === 0,
      })
      expect(stderr).toContain('The model has left')
      expect(stderr).not.toContain('defect')
    }
  })

  test('fails if the answer breaks off, and requires a question', async () => {
    const { sandbox, runtime } = await createChatSandbox(async turn => {
      await turn.sendToken('half')
      turn.disconnect()
    })
    expect(await sandbox.wb(['ask', 'why?'])).toMatchObject({ status: 6 })
    runtime.answerMetadata = { finish_reason: 'stop', interrupted: 'true' }
    expect(await sandbox.wb(['ask', 'why?', '--no-stream'])).toMatchObject({ status: 1 })
    expect(await sandbox.wb(['chat'], { input: '' })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('QUESTION is missing'),
    })
  })
})

describe('in a terminal', { timeout: 40_000 }, () => {
  test('wb ask shows passages instead of an answer if there is no model', async () => {
    const { sandbox, runtime } = await createChatSandbox()
    runtime.refusal = noModel
    const { status, text } = await runInFakeTerminal(sandbox, ['ask', 'why?'])
    expect(status, text).toBe(0)
    expect(stripSequences(text)).toContain('A passage that was found.')
  })

  test('continues a conversation with an answer, a tool call, a source and a command in a later session', async () => {
    const { sandbox, runtime } = await createChatSandbox(answerWithTool)
    const { type, shows, ended, raw } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('which ')
    type('\x1b[200~one\ntwo\nthree\nfour\nfive\x1b[201~')
    await shows('[pasted 5 lines]')
    type('\r')
    await shows('wants to use mcp:files:write')
    // Input that was typed before the approval prompt appeared must not answer it.
    await shows('119 s left')
    type('o')
    await shows('12 ms')
    await shows('Both laws hold together [1].')
    await shows('[1] aeroelastic models')
    await shows('100 tokens')
    expect(runtime.sentMessages).toMatchObject([
      { content: 'which one\ntwo\nthree\nfour\nfive', approvals: true },
    ])
    type('\x1b1')
    await shows('The passage itself.')
    type('q')
    type('/export out.md\r')
    await shows('wrote the conversation to out.md')
    const exported = await sandbox.wb(['conversations', 'export'])
    expect(exported.stdout).toContain('## Maven\n\nBoth laws hold together [^1].')
    expect(readFileSync(join(sandbox.home, 'out.md'), 'utf8')).toBe(exported.stdout)
    type('/export out.md\r')
    await shows('"out.md" already exists')
    type('/quit\r')
    expect(await ended).toBe(0)
    expect(raw()).toContain('--conversation')
    const again = startChat(sandbox, ['maven', '--continue'])
    await again.shows('you    which one')
    await again.shows('const a = 1')
    again.type('\x04')
    expect(await again.ended).toBe(0)
  })

  test('sends without detached if the runtime has too many detached turns', async () => {
    const { sandbox, runtime } = await createChatSandbox(answerWithText)
    runtime.isFull = true
    const { type, shows, ended } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('x\r')
    await shows('100 tokens')
    expect(runtime.sentMessages).toMatchObject([{ detached: true }, { approvals: true }])
    expect(runtime.sentMessages[1]).not.toHaveProperty('detached')
    type('\x04')
    expect(await ended).toBe(0)
  })

  test('/copy uses the terminal without a clipboard program, and says that it cannot confirm the copy', async () => {
    const { sandbox } = await createChatSandbox(answerWithText)
    sandbox.env.PATH = join(sandbox.home, 'empty')
    const { type, shows, ended, raw } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('x\r')
    await shows('100 tokens')
    type('/copy\r')
    await shows('asked the terminal to copy the answer')
    expect(raw()).toContain(`\x1b]52;c;${Buffer.from(answer).toString('base64')}\x07`)
    type('\x04')
    expect(await ended).toBe(0)
  })

  test('shows all ten thousand lines exactly once while the terminal is resized', async () => {
    const lines = Array.from({ length: 10_000 }, (_, at) => `- line ${at} of many\n`)
    const { sandbox } = await createChatSandbox(async turn => {
      for (const line of lines) await turn.sendToken(line)
      await turn.finish(lines.join(''))
    })
    const { type, shows, ended, resize, raw } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('all\r')
    for (const [columns, rows] of [
      [60, 20],
      [100, 30],
      [40, 12],
      [80, 24],
    ] as const) {
      resize(columns, rows)
      await shows('of many')
    }
    await shows('line 9999 of many')
    await shows('100 tokens')
    type('\x03\x03')
    expect(await ended).toBe(0)
    const text = stripSequences(raw())
    expect(lines.filter(line => !text.includes(line.slice(2, -1)))).toEqual([])
  })

  test('Ctrl-C stops an answer, and a second Ctrl-C exits in any state', async () => {
    const aborted: boolean[] = []
    const { sandbox } = await createChatSandbox(async turn => {
      await turn.sendToken('One moment ')
      if (turn.userMessage.content === 'tool')
        await Promise.race([turn.requestApproval(call), failOnAbort(turn)])
      else await failOnAbort(turn)
      aborted.push(turn.signal.aborted)
    })
    const { type, shows, ended } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    for (const [question, sign] of [
      ['first', 'One moment'],
      ['tool', 'wants to use'],
    ] as const) {
      type(`${question}\r`)
      await shows(sign)
      type('\x03')
      await shows('stopped')
      await shows('press ctrl+c again to leave')
    }
    type('draft\x03')
    await shows('press ctrl+c again to leave')
    type('\x03')
    expect(await ended).toBe(0)
    expect(aborted).toEqual([true, true])
  })

  test('Ctrl-C stops an upload, and the chat continues', async () => {
    const { sandbox, runtime } = await createChatSandbox(answerWithText)
    writeFileSync(join(sandbox.home, 'day.md'), 'Rain.')
    const { type, shows, ended } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('/attach day.md\r')
    await shows('attaching day.md…')
    type('why?\r')
    await shows('wait for the file, or stop it with ctrl+c')
    expect(runtime.sentMessages).toEqual([])
    type('\x03')
    await shows('stopped attaching day.md')
    type('\x7f?\r')
    await shows('100 tokens')
    expect(runtime.sentMessages).toMatchObject([{ content: 'why?' }])
    type('/attach day.md\r')
    await shows('attaching day.md…')
    type('/quit\r')
    expect(await ended).toBe(0)
  })

  test('Ctrl-C ends a single question as interrupted, and keeps the printed text', async () => {
    const { sandbox } = await createChatSandbox(async turn => {
      await turn.sendToken('One.\n\nHalf of it')
      await failOnAbort(turn)
    })
    const { type, shows, ended, raw } = startChat(sandbox, ['why?'], { command: 'ask' })
    await shows('One.')
    type('\x03')
    await shows('Half of it')
    await shows('interrupted')
    expect(await ended).toBe(130)
    expect(raw()).not.toContain('the answer was interrupted')
  })

  test.each([
    ['once', '\x1b[B\r', '4 characters'],
    ['not at all, because Enter alone declines', '\r', 'not allowed'],
  ])(
    'a single question asks for approval before a tool runs, and the user allows it %s',
    async (_name, keys, expected) => {
      const { sandbox, runtime } = await createChatSandbox(answerWithTool)
      const { type, shows, ended } = startChat(sandbox, ['which laws?'], { command: 'ask' })
      await shows('Maven wants to use mcp:files:write with')
      await shows('"path": "/tmp/x"')
      await shows('allow this call?')
      type(keys)
      await shows(expected)
      await shows('Both laws hold together [1].')
      expect(await ended).toBe(0)
      expect(runtime.sentMessages).toMatchObject([{ approvals: true }])
    },
  )

  test('a single question ends as interrupted if the user exits at an approval', async () => {
    const { sandbox } = await createChatSandbox(answerWithTool)
    const { type, shows, ended } = startChat(sandbox, ['which laws?'], { command: 'ask' })
    await shows('allow this call?')
    type('\x03')
    expect(await ended).toBe(130)
  })

  test('prints plain lines for screen readers', async () => {
    const { sandbox } = await createChatSandbox(answerWithTool)
    const { type, shows, ended, raw } = startChat(sandbox, ['maven', '--screen-reader'])
    await shows('you: ')
    type('why?\r')
    await shows('Type a choice: “once”, “always” or “never”.')
    type('once\r')
    await shows('Tool 1: mcp:files:write, with “/tmp/x”, success, 12 ms')
    await shows('Both laws hold together [1].')
    await shows('Source 1: aeroelastic')
    type('/open 1\r')
    await shows('The passage itself.')
    type('/quit\r')
    expect(await ended).toBe(0)
    expect(raw()).not.toMatch(/[╭│]|\x1b\[\?1049h/)
  })

  test('strips control sequences from an answer [security rule 16]', async () => {
    const evil = 'a\x1b]52;c;b3duZWQ=\x07\x1b]0;owned\x07\x1b[2Jb'
    const { sandbox } = await createChatSandbox(async turn => {
      await turn.sendToken(evil)
      await turn.finish(evil)
    })
    const { type, shows, ended, raw } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('x\r')
    await shows('Maven  ab')
    await shows('100 tokens')
    type('\x03\x03')
    await ended
    expect(raw()).not.toMatch(/owned|\x1b\]52|\x1b\[2J/)
  })

  test('an empty chat suggests a question, and lists the passages of an answer without citations', async () => {
    const { sandbox, runtime } = await createChatSandbox(async turn => {
      await turn.sendToken('Both laws.')
      await turn.finish('Both laws.', { context_chunks: JSON.stringify([['c1', ids.base, ids.document]]) })
    })
    const { type, shows, ended } = startChat(sandbox, ['maven'])
    await shows('Maven answers from papers')
    await shows('1  What does “Similarity laws” say?')
    type('\x1b1')
    await shows('passages used but not cited:')
    await shows('[1] laws.md')
    await shows('100 tokens')
    expect(runtime.sentMessages).toMatchObject([{ content: 'What does “Similarity laws” say?' }])
    type('\x1b1')
    await shows('The passage itself.')
    type('q\x03\x03')
    expect(await ended).toBe(0)
  })

  test('shows a message that is typed during an answer as queued, and sends it after the answer', async () => {
    let finish = () => {}
    const { sandbox, runtime } = await createChatSandbox(async turn => {
      await turn.sendToken('One moment')
      if (turn.userMessage.content === 'first') await new Promise<void>(done => (finish = done))
      await turn.finish('One moment')
    })
    const { type, shows, ended } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('first\r')
    await shows('One moment')
    type('second\r')
    await shows('queued  second')
    finish()
    await shows('you    second')
    await shows('200 tokens')
    expect(runtime.sentMessages.map(({ content }) => content)).toEqual(['first', 'second'])
    type('\x03\x03')
    expect(await ended).toBe(0)
  })

  test('uses ASCII symbols in an ASCII terminal', async () => {
    const { sandbox } = await createChatSandbox(answerWithText)
    sandbox.env.LC_ALL = 'C'
    const { type, shows, ended, raw } = startChat(sandbox, ['maven'])
    await shows('| ask Maven')
    type('x\r')
    await shows('100 tokens')
    type('\x03\x03')
    await ended
    expect(raw()).not.toMatch(/[^\x00-\x7f]/)
  })
})

function failOnAbort({ signal }: ScriptedTurn): Promise<void> {
  return new Promise(done => {
    if (signal.aborted) done()
    else signal.addEventListener('abort', () => done())
  })
}
