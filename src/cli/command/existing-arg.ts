import * as Args from '@oclif/core/args'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../errors.ts'
import type { NamedResource, ResolveContext } from '../find/resolve.ts'
import { isId } from '../id.ts'
import type { Io } from '../io.ts'
import * as person from '../terminal/ask.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import type { MissingArgument } from './parse-error.ts'

/** Maximum number of choices in a list; others are typed by name. */
const choicesMax = 200
const typeNameId = 'byHand'

/**
 * Declares a required argument that names an existing resource. If it is missing, the user chooses one in a
 * terminal; elsewhere, that is a usage error.
 *
 * @param mayBeNew  also accepts the name of a resource that does not exist yet
 */
export function existingArg(choices: Choices, description: string, { mayBeNew = false } = {}) {
  return { ...Args.string({ required: true, description }), choices, mayBeNew }
}

/** Dependencies of a question to the user. */
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
export async function promptForArgument(argument: MissingArgument, asking: PromptContext): Promise<string> {
  const { choices, mayBeNew, pathQuestion } = argument
  if (pathQuestion !== undefined) return person.askPath(asking.io, pathQuestion, asking.signal)
  if (!choices) return promptForText(argument, asking)
  const found = await listChoices(choices, asking, mayBeNew)
  const { noun } = choices
  if (found.length === 0 && mayBeNew) return promptForText(argument, asking)
  if (found.length === 0)
    throw new UsageError(`${argument.name.toUpperCase()} is missing, and there is no ${noun} to choose`)
  const rest = { id: typeNameId, name: mayBeNew ? 'a new one, by name' : 'another one, by name or ID' }
  const more = mayBeNew || found.length > choicesMax ? [rest] : []
  const listed = found.slice(0, choicesMax).map(choice => ({ id: choice.id, name: choiceLabel(choice) }))
  const chosen = await person.choose(asking.io, `Which ${noun}?`, [...listed, ...more], asking.signal)
  return chosen === typeNameId ? promptForText(argument, asking) : chosen
}

function promptForText(
  { name, description }: MissingArgument,
  { io, signal }: PromptContext,
): Promise<string> {
  return person.ask(io, `${name.toUpperCase()}${description ? ` (${description})` : ''}:`, signal)
}

/** Returns up to `offeredMax + 1` choices; the extra one shows that the list is incomplete. */
async function listChoices(
  choices: Choices,
  { resolveContext, flags }: PromptContext,
  mayBeNew = false,
): Promise<NamedResource[]> {
  const found: NamedResource[] = []
  try {
    for await (const choice of choices.list(resolveContext, flags)) {
      found.push(choice)
      if (found.length > choicesMax) break
    }
  } catch (error) {
    // If the resource may be new, its workspace or knowledge base may not exist yet either.
    if (!mayBeNew || !(error instanceof WbError) || error.status !== 404) throw error
  }
  return found
}

/** Returns a name with its ID in parentheses, because names are not unique. */
function choiceLabel({ id, name }: NamedResource): string {
  return name === id ? id : `${name} (${isId(id) ? id.slice(0, 8) : id})`
}

/** Returns true if one of the resources has this name. */
export async function isNameTaken(among: AsyncIterable<NamedResource>, wanted: string): Promise<boolean> {
  for await (const { name } of among) if (name === wanted) return true
  return false
}
