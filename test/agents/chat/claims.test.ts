import { expect, test } from 'vitest'
import { claimsIn } from '../../../src/agents/chat/claims.ts'

const claims = (answer: string) => claimsIn(answer).map(({ start, end }) => answer.slice(start, end))

test('splits an answer into its statements, without headings, marks, code and tables', () => {
  const answer = [
    '## Refunds at a glance today',
    '',
    'Refunds take **14 days** [1]. They are paid by Dr. Berg. [2] See the list below for more:',
    '',
    '- **Deadline:** You have 30 days to return it [1][2].',
    '2. Send `items` back to [the shop](https://a.example/b).',
    '',
    '```sh',
    'This is not a statement at all.',
    '```',
    '| the first column | has some words here |',
    '| --- | --- |',
    '',
    '> The quoted sentence is a statement too.',
  ].join('\n')
  expect(claims(answer)).toEqual([
    'Refunds take **14 days** [1].',
    'They are paid by Dr. Berg. [2]',
    'You have 30 days to return it [1][2].',
    'Send `items` back to [the shop](https://a.example/b).',
    'The quoted sentence is a statement too.',
  ])
  expect(
    claimsIn(answer)
      .map(({ text }) => text)
      .slice(0, 4),
  ).toEqual([
    'Refunds take 14 days.',
    'They are paid by Dr. Berg.',
    'You have 30 days to return it.',
    'Send items back to the shop.',
  ])
})

test.each([
  'Would you like to know more about it?',
  'Let me know if you need anything else.',
  'I could not find the opening hours.',
  'The passages do not mention the opening hours.',
  'There is no information about the opening hours.',
  'Here are the three steps you need:',
  'Yes, it is.',
  '',
])('does not treat %j as a statement', sentence => {
  expect(claims(sentence)).toEqual([])
})
