import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ChatRuntime, chatRuntime, citing, ids, type Stage, speak } from '../fakes/chat-runtime.ts'
import { imageBytes, imageOf } from '../harness/images.ts'
import { chat } from './chat-terminal.ts'
import { inFakeTerminal, withoutSequences } from './terminal.ts'
import { type Place, place } from './wb.ts'

const answer = 'Both laws hold together [1].\n\n```ts\nconst a = 1\n```\n'
const noModel = {
  status: 503,
  code: 'llm_credential_missing',
  message: 'LLM service "x" lacks its key',
  hint: 'Set KEY.',
}
const call = { id: 't1', name: 'mcp:files:write', arguments: '{"path":"/tmp/x"}' }

async function spoken(stage: Stage): Promise<void> {
  await speak(stage, answer)
  await stage.done(answer, citing())
}

/** The answer comes after a tool that must be asked for. */
async function withTool(stage: Stage): Promise<void> {
  await stage.token('Let me see.')
  await stage.say('token-reset', {})
  await stage.say('tool-call', { toolCalls: [call] })
  const decision = stage.asked.approvals ? await stage.approval(call) : 'denied'
  const outcome = decision === 'once' ? 'success' : 'denied'
  await stage.say('tool-result', {
    toolCallId: 't1',
    name: call.name,
    content: decision,
    outcome,
    durationMs: 12,
  })
  await spoken(stage)
}

async function stageFor(play?: ChatRuntime['play']): Promise<{ here: Place; runtime: ChatRuntime }> {
  const runtime = await chatRuntime()
  onTestFinished(() => runtime.close())
  if (play) runtime.play = play
  const here = place()
  here.env.WB_URL = runtime.url
  return { here, runtime }
}

describe('where there is no terminal', () => {
  test('a question comes in, and its answer goes out with its sources', async () => {
    const { here, runtime } = await stageFor(withTool)
    const { status, stdout, stderr } = await here.wb(['agents', 'chat', 'maven'], { input: 'which laws?\n' })
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: `${answer}\n\n[1] aeroelastic models of heated high speed aircraft · chunk 2\n[2] aeroelastic models of heated high speed aircraft · page 4\n`,
    })
    expect(stderr).toBe('  mcp:files:write  denied  12 ms\n    denied\n')
    expect(runtime.asked).toEqual([{ content: 'which laws?' }])
  })

  test('--image sends files by their content', async () => {
    const { here, runtime } = await stageFor()
    writeFileSync(join(here.home, 'a.png'), imageBytes('image/png'))
    writeFileSync(join(here.home, 'b.txt'), imageBytes('image/webp'))
    const { status } = await here.wb(['ask', '--image', 'a.png', '--image', 'b.txt', 'which is it?'])
    expect(status).toBe(0)
    const images = [imageOf('image/png'), imageOf('image/webp')]
    expect(runtime.asked).toEqual([{ content: 'which is it?', images }])
  })

  test.each<[what: string, files: string[], words: string]>([
    ['a missing file', ['nope.png'], '"nope.png" cannot be read: there is no such file'],
    ['a folder', ['.'], '"." cannot be read: it is a folder'],
    ['a large file', ['large.png'], '"large.png" is too large: an image can have at most 5.0 MB'],
    ['another format', ['a.svg'], '"a.svg" is not an image in a supported format'],
    ['five files', Array(5).fill('a.png'), 'A message can have at most 4 images, not 5'],
  ])('--image refuses %s, and nothing is sent', async (_, files, words) => {
    const { here, runtime } = await stageFor()
    writeFileSync(join(here.home, 'a.png'), imageBytes('image/png'))
    writeFileSync(join(here.home, 'a.svg'), '<svg/>')
    writeFileSync(join(here.home, 'large.png'), imageBytes('image/png', 5_000_001))
    const flags = files.flatMap(file => ['--image', file])
    const { status, stderr } = await here.wb(['ask', 'why?', ...flags])
    expect(status).toBe(2)
    expect(stderr).toContain(words)
    expect(runtime.asked).toEqual([])
  })

  test.each([
    ['show', 'what is this? [image 1: image/png, 2 kB]'],
    ['export', 'what is this?\n\n[image 1: image/png, 2 kB]'],
  ])('wb conversations %s names the images of a message', async (command, words) => {
    const { here, runtime } = await stageFor()
    await here.wb(['ask', 'what is this?'])
    Object.assign(runtime.said[0]!, { images: [{ index: 0, mediaType: 'image/png', bytes: 1_500 }] })
    expect((await here.wb(['conversations', command])).stdout).toContain(words)
  })

  test('reasoning is not printed', async () => {
    const { here } = await stageFor(async stage => {
      await stage.say('reasoning', { delta: 'Two and two.' })
      await spoken(stage)
    })
    const { status, stdout, stderr } = await here.wb(['ask', 'what is 2 + 2?'])
    expect({ status, stdout: stdout.slice(0, answer.length) }).toEqual({ status: 0, stdout: answer })
    expect(stdout + stderr).not.toContain('Two and two')
  })

  test.each([
    ['length', 'the answer is cut off: the model reached its output limit'],
    ['content_filter', 'a content filter of the provider stopped the answer'],
  ])('an answer that ended with %s is an answer, with a note on stderr', async (reason, told) => {
    const metadata = { finish_reason: reason }
    const { here, runtime } = await stageFor(stage => stage.done('Half.', metadata))
    runtime.whole = metadata
    const streamed = await here.wb(['ask', 'why?', '--agent', 'maven'])
    expect(streamed).toMatchObject({ status: 0, stdout: 'Half.\n', stderr: `  ${told}\n` })
    const whole = await here.wb(['ask', 'why?', '--agent', 'maven', '--no-stream'])
    expect(whole).toMatchObject({ status: 0, stderr: `  ${told}\n` })
  })

  test('--json prints the events, --no-stream one object', async () => {
    const { here } = await stageFor(spoken)
    const lines = (await here.wb(['chat', 'maven', 'why?', '--json'])).stdout.trim().split('\n')
    const events = lines.map(line => JSON.parse(line) as { event: string })
    expect(events.map(({ event }) => event)).toEqual(['user-message', ...Array(11).fill('token'), 'done'])
    const whole = await here.wb(['ask', 'why?', '--no-stream'])
    expect(JSON.parse(whole.stdout)).toMatchObject({
      user: { content: 'why?' },
      assistant: { content: 'Whole.' },
    })
    expect(whole.stderr).toBe('  Maven answers; wb agents list shows the others\n')
  })

  test('with no model, passages stand in for the answer', async () => {
    const { here, runtime } = await stageFor()
    runtime.refusal = noModel
    const { status, stdout, stderr } = await here.wb(['ask', 'why?'])
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout:
        'search results, not written by a model:\n\n[1] laws.md\n    A passage that was found.\n    laws.md · chunk 2\n',
    })
    expect(stderr).toMatch(
      /\n {2}no model is available: LLM service "x" lacks its key\n {2}Set KEY\.\n {2}With Ollama[^\n]*\n {2}wb services create llama [^\n]*\n {2}wb agents update Maven --llm llama\n[^\n]*KEY[^\n]*\n[^\n]*\n {2}wb search .why\?. --json[^\n]*\n$/,
    )
  })

  test.each([
    [
      '--no-stream',
      /^ {2}✗ LLM service "x" lacks its key \(llm_credential_missing[^\n]*\n {4}Set KEY\.\n {4}With Ollama on this machine:\n {4}wb services create llama /,
    ],
    ['--json', /"hint":"Set KEY\. With Ollama on this machine: wb services create llama /],
  ])('with no model, %s tells how to set one up', async (form, told) => {
    const { here, runtime } = await stageFor()
    runtime.refusal = noModel
    const { status, stdout, stderr } = await here.wb(['ask', 'why?', '--agent', 'maven', form])
    expect({ status, stderr }).toEqual({ status: 6, stderr: expect.stringMatching(told) })
    expect(stdout).not.toContain('found')
  })

  test.each([
    ['a refusal', { status: 403, code: 'forbidden', message: 'not you' }, 3, 'not you'],
    ['a limit', { status: 429, code: 'rate_limited', message: 'later' }, 6, 'later'],
  ])('%s ends with its status', async (_name, refusal, status, told) => {
    const { here, runtime } = await stageFor()
    runtime.refusal = refusal
    const ended = await here.wb(['ask', 'why?'])
    expect(ended).toMatchObject({ status, stdout: '' })
    expect(ended.stderr.toLowerCase()).toContain(told)
  })

  test('an answer that failed is a failure, in every form, and no defect of wb', async () => {
    const metadata = { finish_reason: 'error', error_message: 'The model has left' }
    const { here, runtime } = await stageFor(stage => stage.say('error', { content: '', metadata }))
    runtime.whole = metadata
    for (const form of [[], ['--json'], ['--no-stream']]) {
      const { status, stdout, stderr } = await here.wb(['ask', 'why?', ...form])
      expect({ form, status, isEmpty: stdout === '' }).toEqual({
        form,
        status: 1,
        isEmpty: form.length === 0,
      })
      expect(stderr).toContain('The model has left')
      expect(stderr).not.toContain('defect')
    }
  })

  test('an answer that breaks off is a failure, and a question is asked for', async () => {
    const { here, runtime } = await stageFor(async stage => {
      await stage.token('half')
      stage.die()
    })
    expect(await here.wb(['ask', 'why?'])).toMatchObject({ status: 6 })
    runtime.whole = { finish_reason: 'stop', interrupted: 'true' }
    expect(await here.wb(['ask', 'why?', '--no-stream'])).toMatchObject({ status: 1 })
    expect(await here.wb(['chat'], { input: '' })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('QUESTION is missing'),
    })
  })
})

describe('in a terminal', { timeout: 40_000 }, () => {
  test('with no model, wb ask shows passages in place of an answer', async () => {
    const { here, runtime } = await stageFor()
    runtime.refusal = noModel
    const { status, text } = await inFakeTerminal(here, ['ask', 'why?'])
    expect(status, text).toBe(0)
    expect(withoutSequences(text)).toContain('A passage that was found.')
  })

  test('a whole conversation: an answer, a tool, a source, a command, and it goes on another day', async () => {
    const { here, runtime } = await stageFor(withTool)
    const { type, shows, ended, raw } = chat(here, ['maven'])
    await shows('ask Maven')
    type('which ')
    type('\x1b[200~one\ntwo\nthree\nfour\nfive\x1b[201~')
    await shows('[pasted 5 lines]')
    type('\r')
    await shows('wants to use mcp:files:write')
    // Who was typing when the question came has not answered it.
    await shows('119 s left')
    type('o')
    await shows('12 ms')
    await shows('Both laws hold together [1].')
    await shows('[1] aeroelastic models')
    await shows('100 tokens')
    expect(runtime.asked).toMatchObject([{ content: 'which one\ntwo\nthree\nfour\nfive', approvals: true }])
    type('\x1b1')
    await shows('The passage itself.')
    type('q')
    type('/export out.md\r')
    await shows('wrote the conversation to out.md')
    const exported = await here.wb(['conversations', 'export'])
    expect(exported.stdout).toContain('## Maven\n\nBoth laws hold together [^1].')
    expect(readFileSync(join(here.home, 'out.md'), 'utf8')).toBe(exported.stdout)
    type('/export out.md\r')
    await shows('"out.md" already exists')
    type('/quit\r')
    expect(await ended).toBe(0)
    expect(raw()).toContain('--conversation')
    const again = chat(here, ['maven', '--continue'])
    await again.shows('you    which one')
    await again.shows('const a = 1')
    again.type('\x04')
    expect(await again.ended).toBe(0)
  })

  test('sends without detached if the runtime has too many detached turns', async () => {
    const { here, runtime } = await stageFor(spoken)
    runtime.isFull = true
    const { type, shows, ended } = chat(here, ['maven'])
    await shows('ask Maven')
    type('x\r')
    await shows('100 tokens')
    expect(runtime.asked).toMatchObject([{ detached: true }, { approvals: true }])
    expect(runtime.asked[1]).not.toHaveProperty('detached')
    type('\x04')
    expect(await ended).toBe(0)
  })

  test('/copy uses the terminal without a clipboard program, and says that it cannot confirm the copy', async () => {
    const { here } = await stageFor(spoken)
    here.env.PATH = join(here.home, 'empty')
    const { type, shows, ended, raw } = chat(here, ['maven'])
    await shows('ask Maven')
    type('x\r')
    await shows('100 tokens')
    type('/copy\r')
    await shows('asked the terminal to copy the answer')
    expect(raw()).toContain(`\x1b]52;c;${Buffer.from(answer).toString('base64')}\x07`)
    type('\x04')
    expect(await ended).toBe(0)
  })

  test('ten thousand lines, while the screen changes its size, are all there and drawn once', async () => {
    const lines = Array.from({ length: 10_000 }, (_, at) => `- line ${at} of many\n`)
    const { here } = await stageFor(async stage => {
      for (const line of lines) await stage.token(line)
      await stage.done(lines.join(''))
    })
    const { type, shows, ended, resize, raw } = chat(here, ['maven'])
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
    const text = withoutSequences(raw())
    expect(lines.filter(line => !text.includes(line.slice(2, -1)))).toEqual([])
  })

  test('Ctrl-C stops an answer, and twice leaves, whatever goes on', async () => {
    const aborted: boolean[] = []
    const { here } = await stageFor(async stage => {
      await stage.token('One moment ')
      if (stage.asked.content === 'tool') await Promise.race([stage.approval(call), gone(stage)])
      else await gone(stage)
      aborted.push(stage.signal.aborted)
    })
    const { type, shows, ended } = chat(here, ['maven'])
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

  test('Ctrl-C stops an upload, and the chat goes on', async () => {
    const { here, runtime } = await stageFor(spoken)
    writeFileSync(join(here.home, 'day.md'), 'Rain.')
    const { type, shows, ended } = chat(here, ['maven'])
    await shows('ask Maven')
    type('/attach day.md\r')
    await shows('attaching day.md…')
    type('why?\r')
    await shows('wait for the file, or stop it with ctrl+c')
    expect(runtime.asked).toEqual([])
    type('\x03')
    await shows('stopped attaching day.md')
    type('\x7f?\r')
    await shows('100 tokens')
    expect(runtime.asked).toMatchObject([{ content: 'why?' }])
    type('/attach day.md\r')
    await shows('attaching day.md…')
    type('/quit\r')
    expect(await ended).toBe(0)
  })

  test('Ctrl-C ends a single question as interrupted, and what was said stays', async () => {
    const { here } = await stageFor(async stage => {
      await stage.token('One.\n\nHalf of it')
      await gone(stage)
    })
    const { type, shows, ended, raw } = chat(here, ['why?'], { command: 'ask' })
    await shows('One.')
    type('\x03')
    await shows('Half of it')
    await shows('interrupted')
    expect(await ended).toBe(130)
    expect(raw()).not.toContain('the answer was interrupted')
  })

  test.each([
    ['once', '\x1b[B\r', '4 characters'],
    ['never, which Enter alone says', '\r', 'not allowed'],
  ])('a single question asks before a tool runs: %s', async (_name, keys, told) => {
    const { here, runtime } = await stageFor(withTool)
    const { type, shows, ended } = chat(here, ['which laws?'], { command: 'ask' })
    await shows('Maven wants to use mcp:files:write with')
    await shows('"path": "/tmp/x"')
    await shows('allow this call?')
    type(keys)
    await shows(told)
    await shows('Both laws hold together [1].')
    expect(await ended).toBe(0)
    expect(runtime.asked).toMatchObject([{ approvals: true }])
  })

  test('a single question that is left at a tool is interrupted', async () => {
    const { here } = await stageFor(withTool)
    const { type, shows, ended } = chat(here, ['which laws?'], { command: 'ask' })
    await shows('allow this call?')
    type('\x03')
    expect(await ended).toBe(130)
  })

  test('plain lines, for who has them read out', async () => {
    const { here } = await stageFor(withTool)
    const { type, shows, ended, raw } = chat(here, ['maven', '--screen-reader'])
    await shows('you: ')
    type('why?\r')
    await shows('Type once, always or never.')
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

  test('an answer sends nothing to the terminal but its words [security rule 16]', async () => {
    const evil = 'a\x1b]52;c;b3duZWQ=\x07\x1b]0;owned\x07\x1b[2Jb'
    const { here } = await stageFor(async stage => {
      await stage.token(evil)
      await stage.done(evil)
    })
    const { type, shows, ended, raw } = chat(here, ['maven'])
    await shows('ask Maven')
    type('x\r')
    await shows('Maven  ab')
    await shows('100 tokens')
    type('\x03\x03')
    await ended
    expect(raw()).not.toMatch(/owned|\x1b\]52|\x1b\[2J/)
  })

  test('an empty chat suggests a question, and lists the passages of an answer without citations', async () => {
    const { here, runtime } = await stageFor(async stage => {
      await stage.token('Both laws.')
      await stage.done('Both laws.', { context_chunks: JSON.stringify([['c1', ids.base, ids.document]]) })
    })
    const { type, shows, ended } = chat(here, ['maven'])
    await shows('Maven answers from papers')
    await shows('1  What does “Similarity laws” say?')
    type('\x1b1')
    await shows('passages used, without citations:')
    await shows('[1] laws.md')
    await shows('100 tokens')
    expect(runtime.asked).toMatchObject([{ content: 'What does “Similarity laws” say?' }])
    type('\x1b1')
    await shows('The passage itself.')
    type('q\x03\x03')
    expect(await ended).toBe(0)
  })

  test('a message that is typed during an answer is shown as queued, and sent after it', async () => {
    let finish = () => {}
    const { here, runtime } = await stageFor(async stage => {
      await stage.token('One moment')
      if (stage.asked.content === 'first') await new Promise<void>(done => (finish = done))
      await stage.done('One moment')
    })
    const { type, shows, ended } = chat(here, ['maven'])
    await shows('ask Maven')
    type('first\r')
    await shows('One moment')
    type('second\r')
    await shows('queued  second')
    finish()
    await shows('you    second')
    await shows('200 tokens')
    expect(runtime.asked.map(({ content }) => content)).toEqual(['first', 'second'])
    type('\x03\x03')
    expect(await ended).toBe(0)
  })

  test('a terminal of ASCII has other signs', async () => {
    const { here } = await stageFor(spoken)
    here.env.LC_ALL = 'C'
    const { type, shows, ended, raw } = chat(here, ['maven'])
    await shows('| ask Maven')
    type('x\r')
    await shows('100 tokens')
    type('\x03\x03')
    await ended
    expect(raw()).not.toMatch(/[^\x00-\x7f]/)
  })
})

function gone({ signal }: Stage): Promise<void> {
  return new Promise(done => {
    if (signal.aborted) done()
    else signal.addEventListener('abort', () => done())
  })
}
