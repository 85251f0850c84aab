import * as Args from '@oclif/core/args'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../faults.ts'
import type { Named, Resolving } from '../find/resolve.ts'
import { isId } from '../id.ts'
import type { Io } from '../io.ts'
import * as person from '../terminal/ask.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import type { MissingArgument } from './parse-fault.ts'

/** Choices that a list holds; of more, the rest is named by hand. */
const offeredMax = 200
const byHand = 'byHand'

/**
 * An argument that must name something that is there. In a terminal it is chosen when it is missing; elsewhere that is
 * a usage error.
 *
 * @param mayBeNew  a name that is not there yet will do as well
 */
export function existing(choices: Choices, description: string, { mayBeNew = false } = {}) {
  return { ...Args.string({ required: true, description }), choices, mayBeNew }
}

/** How a person is asked, and what for. */
interface Asking {
  readonly resolving: Resolving
  readonly flags: NarrowingFlags
  readonly io: Io
  readonly signal: AbortSignal
}

/**
 * The value of an argument that is missing, from the person.
 *
 * @throws UsageError  there is nothing to choose from
 */
export async function missingValue(argument: MissingArgument, asking: Asking): Promise<string> {
  const { choices, mayBeNew, pathQuestion } = argument
  if (pathQuestion !== undefined) return person.askPath(asking.io, pathQuestion, asking.signal)
  if (!choices) return typed(argument, asking)
  const found = await offered(choices, asking, mayBeNew)
  const { one } = choices
  if (found.length === 0 && mayBeNew) return typed(argument, asking)
  if (found.length === 0)
    throw new UsageError(`${argument.name.toUpperCase()} is missing, and there is no ${one} to choose`)
  const rest = { id: byHand, name: mayBeNew ? 'another one, by its name' : 'another one, by its name or id' }
  const more = mayBeNew || found.length > offeredMax ? [rest] : []
  const listed = found.slice(0, offeredMax).map(choice => ({ id: choice.id, name: line(choice) }))
  const chosen = await person.choose(asking.io, `Which ${one}?`, [...listed, ...more], asking.signal)
  return chosen === byHand ? typed(argument, asking) : chosen
}

function typed({ name, description }: MissingArgument, { io, signal }: Asking): Promise<string> {
  return person.ask(io, `${name.toUpperCase()}${description ? ` (${description})` : ''}:`, signal)
}

/** The first choices, and one more where there are more of them. */
async function offered(choices: Choices, { resolving, flags }: Asking, mayBeNew = false): Promise<Named[]> {
  const found: Named[] = []
  try {
    for await (const choice of choices.among(resolving, flags)) {
      found.push(choice)
      if (found.length > offeredMax) break
    }
  } catch (error) {
    // Where a name may be new, there may be no place for it yet either.
    if (!mayBeNew || !(error instanceof WbError) || error.status !== 404) throw error
  }
  return found
}

/** A name with what tells it from another of the same name. */
function line({ id, name }: Named): string {
  return name === id ? id : `${name} (${isId(id) ? id.slice(0, 8) : id})`
}

/** Whether one of them has this name already. */
export async function isTaken(among: AsyncIterable<Named>, wanted: string): Promise<boolean> {
  for await (const { name } of among) if (name === wanted) return true
  return false
}
