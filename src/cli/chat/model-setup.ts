import { shellWord } from '../../base/shell-word.ts'
import { WbError } from '../../contract/errors.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Matches a hint that {@link modelSetupLines} repeats. */
const repeatedHint = /^Set OPENROUTER_API_KEY /

/**
 * Returns lines that explain why no model is available. They precede {@link modelSetupLines}.
 *
 * @param message  description of the problem, with the service and its missing setting
 * @param next     next steps for the user
 */
export function noModelLines(message: string, next: readonly string[]): string[] {
  return [`no model is available: ${message}`, ...next]
    .map(plainLine)
    .filter(line => line !== '' && !repeatedHint.test(line))
}

/** Returns lines that explain how to set up a model. Each command is on a separate line, so it can be copied. */
export function modelSetupLines(agent: string): string[] {
  return [
    'With Ollama on this machine:',
    'wb services create llama --type llm --provider ollama --model llama3.2',
    `wb agents update ${shellWord(agent)} --llm llama`,
    'Or with OpenRouter: set OPENROUTER_API_KEY where the runtime is started, or in the file .env in its data directory.',
    'wb services list --type llm shows the models that are set up',
  ]
}

/** Heading of passages that are shown instead of an answer. */
export const passagesHeading = 'search results, not written by a model:'

/** Error codes of a runtime that has no model for the agent. */
export const noModelCodes: readonly string[] = ['chat_disabled', 'llm_credential_missing']

export function isNoModelError(error: unknown): error is WbError {
  return error instanceof WbError && noModelCodes.includes(error.code)
}

/** Adds the steps to set up a model to an error, if the error is that the agent has no model. */
export function withModelSetup(error: unknown, agent: string): unknown {
  if (!isNoModelError(error)) return error
  return new WbError(error.code, error.message, {
    ...error.facts,
    next: [error.hint, ...modelSetupLines(agent)].filter(line => !repeatedHint.test(line)),
  })
}
