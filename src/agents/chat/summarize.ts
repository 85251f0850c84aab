import type { Clock } from '../../base/clock.ts'
import { cutUnits } from '../../base/cut-units.ts'
import { withTimeout } from '../../base/deadline.ts'
import type { ChatMessage } from '../../models/chat/completion.ts'
import { bytesPerToken } from '../estimate-tokens.ts'
import { fitPassages } from '../tools/passage-budget.ts'
import { previewText } from '../tools/tool-result.ts'
import type { AnsweringModel } from './answering-model.ts'
import type { PastTurn } from './past-turns.ts'
import { DataTags } from './system-prompt.ts'

/** A summary, and the metadata of its message: the model, token counts and cost. */
export interface WrittenSummary {
  readonly text: string
  readonly metadata: Record<string, string>
}

const timeoutMs = 60_000
/** Maximum tokens of the model's answer, including reasoning. */
const answerTokensMax = 1_024
const questionCharsMax = 200

/** Shares of the context window for the input and for the summary. */
const contextShares = { input: 1 / 6, summary: 1 / 16 }
const summaryTokensMax = 1_000

/**
 * Summarizes turns and the previous summary in one model call.
 *
 * @throws TimedOut
 * @throws Error  the answer is empty
 * @throws the errors of `ChatClient.complete`
 */
export async function summarize(
  previousSummary: string | undefined,
  turns: readonly PastTurn[],
  { model, clock, signal }: { model: AnsweringModel; clock: Clock; signal: AbortSignal },
): Promise<WrittenSummary> {
  const dataTags = new DataTags()
  const messages: ChatMessage[] = [
    { role: 'system', content: promptFor(model, dataTags) },
    { role: 'user', content: dataTags.enclose('conversation', inputOf(previousSummary, turns, model)) },
  ]
  const maxTokens = Math.min(model.maxTokens, answerTokensMax)
  const request = (timeoutSignal: AbortSignal) =>
    model.chat.complete(messages, { maxTokens, signal: timeoutSignal })
  signal.throwIfAborted()
  const { text, ...usage } = await withTimeout(clock, timeoutMs, request, signal)
  if (text.trim() === '') throw new Error('the model returned an empty summary')
  const { promptTokens, completionTokens, costUsd } = usage
  return {
    text: beginningOf(text.trim(), summaryBytesFor(model)),
    metadata: {
      summary_by: 'model',
      model: model.model,
      ...(promptTokens !== null && { prompt_tokens: String(promptTokens) }),
      ...(completionTokens !== null && { completion_tokens: String(completionTokens) }),
      ...(costUsd !== null && { cost_usd: String(costUsd) }),
    },
  }
}

function promptFor(model: AnsweringModel, dataTags: DataTags): string {
  const words = Math.floor(summaryBytesFor(model) / 8)
  return `You summarize the earlier part of a conversation, so that the conversation can continue without it. Write at most ${words} words in the language of the conversation: what the user wants, what was answered and decided, with names, numbers and identifiers, and what is still open. Write plain text without citations. ${dataTags.rule}`
}

/** Returns the text to summarize. If it is too long, shortens all messages by the same factor. */
function inputOf(
  previousSummary: string | undefined,
  turns: readonly PastTurn[],
  model: AnsweringModel,
): string {
  const texts = [
    ...(previousSummary === undefined ? [] : [`Summary of what came before:\n${previousSummary}`]),
    ...turns.flatMap(({ messages }) => messages.map(textOf)).filter(text => text !== undefined),
  ]
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  const inputBytesMax = contextShares.input * model.contextTokens * bytesPerToken
  return texts
    .map(text => cutUnits(text, Math.floor(text.length * Math.min(1, inputBytesMax / bytes))))
    .join('\n\n')
}

/** Returns the text of a message; undefined for tool results, because the answer reflects them. */
function textOf(message: ChatMessage): string | undefined {
  if (message.role === 'user') return `User: ${message.content}`
  return message.role === 'assistant' && message.content ? `Assistant: ${message.content}` : undefined
}

/** Returns a summary without a model call: the previous summary, and a list of the questions of the turns. */
export function listQuestions(
  previousSummary: string | undefined,
  turns: readonly PastTurn[],
  model: AnsweringModel,
): WrittenSummary {
  const bytesMax = summaryBytesFor(model)
  const previous = beginningOf(previousSummary ?? '', bytesMax / 2)
  const questions = turns.map(
    ({ rows }) => `- ${previewText(oneLine(rows[0]!.content ?? ''), questionCharsMax)}`,
  )
  const questionBytesMax = bytesMax - Buffer.byteLength(`${previous}\n\n${questionsHeading}\n`)
  return {
    text: [previous, [questionsHeading, ...newestLinesThatFit(questions, questionBytesMax)].join('\n')]
      .filter(Boolean)
      .join('\n\n'),
    metadata: { summary_by: 'rule' },
  }
}

const questionsHeading = 'The user asked earlier:'

function newestLinesThatFit(lines: readonly string[], bytesMax: number): readonly string[] {
  let bytesLeft = bytesMax
  const last = lines.findLastIndex(line => {
    bytesLeft -= Buffer.byteLength(line) + 1
    return bytesLeft < 0
  })
  return lines.slice(last + 1)
}

function beginningOf(text: string, bytesMax: number): string {
  return fitPassages([text], '', bytesMax)[0]!.text
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function summaryBytesFor({ contextTokens }: AnsweringModel): number {
  return Math.min(summaryTokensMax, Math.floor(contextTokens * contextShares.summary)) * bytesPerToken
}
