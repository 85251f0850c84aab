import { expect, onTestFinished, test } from 'vitest'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import { openTestChat } from '../../harness/test-chat.ts'

const answersAtOnce = 500

test('500 answers for one caller run at once, and all complete', async () => {
  const chat = await openTestChat()
  const { url } = await serveOverHttp(chat)
  // Each answer pauses in the middle until all of them have started.
  chat.model.respond(() => ({ text: 'Hello there.', silentAfter: 2 }))
  const conversations = await Promise.all(
    Array.from({ length: answersAtOnce }, () => chat.startConversation()),
  )
  const answers = conversations.map(async ({ path }) => {
    const answer = await fetch(`${url}${path}/messages/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content: 'hi' }),
    })
    return answer.text()
  })
  await expect.poll(() => chat.model.received.length, { timeout: 30_000 }).toBe(answersAtOnce)
  // Some answers may not have paused yet.
  const releasing = setInterval(() => chat.model.release(), 50)
  onTestFinished(() => clearInterval(releasing))
  for (const events of await Promise.all(answers)) expect(events).toContain('event: done\n')
})
