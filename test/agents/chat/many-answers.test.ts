import { expect, onTestFinished, test } from 'vitest'
import { chatting } from '../../harness/chatting.ts'
import { wired } from '../../harness/wired.ts'

const answersAtOnce = 500

test('500 answers for one caller run at the same time, and all complete', async () => {
  const chat = await chatting()
  const { url } = await wired(chat)
  // Each answer falls silent in its middle until all of them have begun.
  chat.model.respond(() => ({ text: 'Hello there.', silentAfter: 2 }))
  const conversations = await Promise.all(Array.from({ length: answersAtOnce }, () => chat.begin()))
  const answers = conversations.map(async ({ path }) => {
    const answer = await fetch(`${url}${path}/messages/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content: 'hi' }),
    })
    return answer.text()
  })
  await expect.poll(() => chat.model.received.length, { timeout: 30_000 }).toBe(answersAtOnce)
  // The last ones may not have fallen silent yet.
  const releasing = setInterval(() => chat.model.release(), 50)
  onTestFinished(() => clearInterval(releasing))
  for (const events of await Promise.all(answers)) expect(events).toContain('event: done\n')
})
