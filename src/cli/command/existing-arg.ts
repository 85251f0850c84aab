import * as Args from '@oclif/core/args'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../errors.ts'
import type { NamedResource, ResolveContext } from '../find/resolve.ts'
import { isId } from '../id.ts'
import type { Io } from '../io.ts'
import * as terminal from '../terminal/ask.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import type { MissingArgument } from './parse-error.ts'

/** Maximum number of resources in a list of choices. To select any other resource, the user types its name. */
const choicesMax = 200
const typeNameId = 'type-name'

/**
 * Declares a required argument that refers to an existing resource. If the argument is missing, a command in a
 * terminal lets the user choose a resource; elsewhere, the command fails with a usage error.
 *
 * @param mayBeNew  true to also accept the name of a resource that does not exist yet
 */
export function existingArg(choices: Choices, description: string, { mayBeNew = false } = {}) {
  return { ...Args.string({ required: true, description }), choices, mayBeNew }
}

/** Dependencies of a prompt. */
interface PromptContext {
  readonly resolveContext: ResolveContext
  readonly flags: NarrowingFlags
  readonly io: Io
  readonly signal: AbortSignal
}

/**
 * Asks for the value of a missing argument.
 *
 * @throws UsageError  there is nothing to choose from
 */
export async function promptForArgument(argument: MissingArgument, context: PromptContext): Promise<string> {
  const { choices, mayBeNew, pathQuestion } = argument
  if (pathQuestion !== undefined) return terminal.askPath(context.io, pathQuestion, context.signal)
  if (!choices) return promptForText(argument, context)
  const available = await listChoices(choices, context, mayBeNew)
  const { noun } = choices
  if (available.length === 0 && mayBeNew) return promptForText(argument, context)
  if (available.length === 0)
    throw new UsageError(`${argument.name.toUpperCase()} is missing, and there is no ${noun} to choose`)
  const typeNameChoice = { id: typeNameId, name: mayBeNew ? 'enter a new name' : 'enter another name or ID' }
  const additionalChoices = mayBeNew || available.length > choicesMax ? [typeNameChoice] : []
  const listedChoices = available
    .slice(0, choicesMax)
    .map(choice => ({ id: choice.id, name: choiceLabel(choice) }))
  const chosenId = await terminal.choose(
    context.io,
    `Which ${noun}?`,
    [...listedChoices, ...additionalChoices],
    context.signal,
  )
  return chosenId === typeNameId ? promptForText(argument, context) : chosenId
}

function promptForText(
  { name, description }: MissingArgument,
  { io, signal }: PromptContext,
): Promise<string> {
  return terminal.ask(io, `${name.toUpperCase()}${description ? ` (${description})` : ''}:`, signal)
}

/** Returns up to `choicesMax + 1` choices. The extra choice shows that the list is incomplete. */
async function listChoices(
  choices: Choices,
  { resolveContext, flags }: PromptContext,
  mayBeNew = false,
): Promise<NamedResource[]> {
  const resources: NamedResource[] = []
  try {
    for await (const choice of choices.list(resolveContext, flags)) {
      resources.push(choice)
      if (resources.length > choicesMax) break
    }
  } catch (error) {
    // If the resource may be new, its workspace or knowledge base may not exist yet either.
    if (!mayBeNew || !(error instanceof WbError) || error.status !== 404) throw error
  }
  return resources
}

/** Returns a name with its ID in parentheses, because names are not unique. */
function choiceLabel({ id, name }: NamedResource): string {
  return name === id ? id : `${name} (${isId(id) ? id.slice(0, 8) : id})`
}

/** Returns true if one of the resources has this name. */
export async function isNameTaken(
  resources: AsyncIterable<NamedResource>,
  nameToFind: string,
): Promise<boolean> {
  for await (const { name } of resources) if (name === nameToFind) return true
  return false
}
