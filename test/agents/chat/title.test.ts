import fc from 'fast-check'
import { expect, test } from 'vitest'
import { titleFromQuestion } from '../../../src/agents/chat/title.ts'
import { refusals } from '../../fakes/chat-server.ts'
import { openTestChat } from '../../harness/test-chat.ts'

test.each<[string, string | null]>([
  ['how do refunds work?', 'how do refunds work?'],
  ['\n  how do\trefunds  work?\nAnd abroad?', 'how do refunds work?'],
  [' \n\t', null],
  [`${'word '.repeat(15)}sentence goes on`, `${'word '.repeat(15).trim()}…`],
  ['字'.repeat(100), `${'字'.repeat(79)}…`],
])('a title is created from %j', (question, title) => {
  expect(titleFromQuestion(question)).toBe(title)
})

test('a title is one line of at most 80 characters from the start of the question, and splits no character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), question => {
      const title = titleFromQuestion(question)
      if (title === null) {
        expect(question.trim()).toBe('')
        return
      }
      expect(title.length).toBeLessThanOrEqual(80)
      expect(title).not.toMatch(/[\uD800-\uDFFF]/u)
      expect(title).not.toMatch(/\n/)
      const line = question.replace(/\s+/g, ' ').trim()
      expect(line.startsWith(title.replace(/…$/, '')) || line.startsWith(title)).toBe(true)
    }),
  )
})

test('a conversation without a title gets one from its first question, and keeps an existing title', async () => {
  const chat = await openTestChat()
  await chat.stream('how do refunds work?')
  await chat.stream('and abroad?')
  const titleOf = async () => (await chat.send(`GET ${chat.path}`)).body.title
  expect(await titleOf()).toBe('how do refunds work?')
  await chat.send(`PATCH ${chat.path}`, { title: null })
  await chat.stream('who pays?')
  expect(await titleOf()).toBeNull()
  const { body } = await chat.send(`POST ${chat.path.slice(0, -37)}`, { title: 'Refunds' })
  const named = `${chat.path.slice(0, -36)}${body.conversationId}`
  await chat.send(`POST ${named}/messages`, { content: 'how?' })
  expect((await chat.send(`GET ${named}`)).body.title).toBe('Refunds')
})

test('a rejected message gives the conversation no title', async () => {
  const chat = await openTestChat()
  chat.model.script(refusals.notChat)
  await chat.send(`POST ${chat.path}/messages`, { content: 'how?' })
  expect((await chat.send(`GET ${chat.path}`)).body.title).toBeNull()
})
