import { expect, test } from 'vitest'
import {
  addCompletion,
  answerMetadata,
  emptyTally,
  type TurnEnding,
  type TurnTally,
} from '../../../src/agents/chat/answer-metadata.ts'
import type { Completion } from '../../../src/models/chat/completion.ts'

const ending: TurnEnding = {
  model: 'small',
  contextWindow: 8_000,
  finishReason: 'stop',
  reasoning: '',
  reasoningMs: 0,
  citations: [],
  citationsDropped: 0,
  toolsLeftOut: 0,
  signInServers: [],
}
const metadataOf = (tally: Partial<TurnTally>, more: Partial<TurnEnding> = {}) =>
  answerMetadata({ ...emptyTally, ...tally }, { ...ending, ...more })

test('an answer without more has only its model and its finish reason', () => {
  expect(metadataOf({}, { reasoningMs: 5 })).toEqual({ model: 'small', finish_reason: 'stop' })
})

test.each([
  [
    { promptTokens: 5, completionTokens: 6, reasoningTokens: 7 },
    {},
    { prompt_tokens: '5', completion_tokens: '6', reasoning_tokens: '7' },
  ],
  [{ contextTokens: 9 }, {}, { context_tokens: '9', context_window: '8000' }],
  [{ costUsd: 0.25 }, {}, { cost_usd: '0.25' }],
  [{ searchQuery: 'laws' }, {}, { search_query: 'laws' }],
  [{ historyDropped: 2, resultsCut: 3 }, {}, { history_dropped: '2', tool_results_cut: '3' }],
  [{}, { reasoning: 'so', reasoningMs: 1.6 }, { reasoning: 'so', reasoning_ms: '2' }],
  [{}, { isInterrupted: true, error: 'no model' }, { interrupted: 'true', error_message: 'no model' }],
  [{}, { isInterrupted: false }, {}],
  [{}, { citationsDropped: 1, toolsLeftOut: 2 }, { citations_dropped: '1', tools_left_out: '2' }],
  [{}, { signInServers: ['issues'] }, { sign_in_required: '["issues"]' }],
  [{}, { citations: [{ number: 1 }] as never }, { citations: '[{"number":1}]' }],
  [
    {
      passages: [
        { chunkId: 'c1', knowledgeBaseId: 'k', documentId: 'd' },
        { chunkId: 'c2', knowledgeBaseId: 'k', documentId: null },
      ] as never,
    },
    {},
    { context_document_ids: 'c1,c2', context_chunks: '[["c1","k","d"],["c2","k",null]]' },
  ],
])('%j and %j are stored as %j', (tally, more, metadata) => {
  expect(metadataOf(tally, more)).toEqual({ model: 'small', finish_reason: 'stop', ...metadata })
})

test('adds up the tokens and the cost of several answers of a model', () => {
  const completion = {
    tokenCount: 100,
    promptTokens: 90,
    completionTokens: 10,
    reasoningTokens: 4,
    costUsd: 0.5,
  } as Completion
  const unknown = {
    tokenCount: null,
    promptTokens: null,
    completionTokens: null,
    reasoningTokens: null,
    costUsd: null,
  } as unknown as Completion
  const first = addCompletion(emptyTally, completion, { dropped: 1, cut: 1 })
  expect(first).toMatchObject({ contextTokens: 100, costUsd: 0.5, historyDropped: 1, resultsCut: 1 })
  const second = addCompletion(first, { ...completion, tokenCount: 200 }, { dropped: 0, cut: 2 })
  expect(second).toMatchObject({
    promptTokens: 180,
    completionTokens: 20,
    reasoningTokens: 8,
    contextTokens: 200,
    costUsd: 1,
    historyDropped: 0,
    resultsCut: 3,
  })
  expect(addCompletion(second, unknown, { dropped: 0, cut: 0 })).toEqual(second)
  expect(addCompletion(emptyTally, unknown, { dropped: 0, cut: 0 })).toEqual(emptyTally)
})
