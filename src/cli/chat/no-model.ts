import { WbError } from '../../contract/errors.ts'
import { shellWord } from '../terminal/shell-word.ts'

/** What a person may do who has no model. Commands stand alone on their lines, to be copied. */
export function noModelLines(agent: string): string[] {
  return [
    'no model answers yet. With Ollama on this machine:',
    'wb services create llama --type llm --provider ollama --model llama3.2',
    `wb agents update ${shellWord(agent)} --llm llama`,
    'or with a key of OpenRouter: OPENROUTER_API_KEY=… where the runtime starts',
    'wb services list --type llm shows the models that are set up',
  ]
}

/** Stands over passages that answer in place of a model. */
export const foundNotWritten = 'found, not written by a model:'

/** Codes of a runtime that has no model for an agent. */
export const withoutModel: readonly string[] = ['chat_disabled', 'llm_credential_missing']

export function lacksModel(error: unknown): error is WbError {
  return error instanceof WbError && withoutModel.includes(error.code)
}

/** Where no passages stand in for an answer, the error says what a person may do. */
export function withWays(error: unknown, agent: string): unknown {
  if (!lacksModel(error)) return error
  return new WbError(error.code, error.message, { ...error.facts, next: noModelLines(agent) })
}
