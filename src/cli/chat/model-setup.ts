import { shellWord } from '../../base/shell-word.ts'
import { WbError } from '../../contract/errors.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/**
 * Returns lines that explain why no model answers.
 *
 * @param message  names the service and what it lacks
 * @param next     what to do next
 */
export function noModelLines(message: string, next: readonly string[]): string[] {
  return [`no model answers: ${message}`, ...next].map(plainLine).filter(line => line !== '')
}

/** Returns lines that explain how to set up a model. Commands are on separate lines, so they can be copied. */
export function modelSetupLines(agent: string): string[] {
  return [
    'With Ollama on this machine:',
    'wb services create llama --type llm --provider ollama --model llama3.2',
    `wb agents update ${shellWord(agent)} --llm llama`,
    'Or with OpenRouter: set OPENROUTER_API_KEY=… in the environment of the runtime.',
    'wb services list --type llm shows the models that are set up',
  ]
}

/** Heading of passages that are shown instead of an answer. */
export const passagesHeading = 'search results, not written by a model:'

/** Error codes of a runtime without a model for the agent. */
export const noModelCodes: readonly string[] = ['chat_disabled', 'llm_credential_missing']

export function lacksModel(error: unknown): error is WbError {
  return error instanceof WbError && noModelCodes.includes(error.code)
}

/** Adds the steps to set up a model to an error, if the agent has none. */
export function withModelSetup(error: unknown, agent: string): unknown {
  if (!lacksModel(error)) return error
  return new WbError(error.code, error.message, {
    ...error.facts,
    next: [error.hint, ...modelSetupLines(agent)],
  })
}
