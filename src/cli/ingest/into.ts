import { existsSync } from 'node:fs'
import { WbError } from '../../contract/errors.ts'
import { aKnowledgeBase } from '../command/choices.ts'
import { isTaken } from '../command/existing.ts'
import { UsageError } from '../faults.ts'
import type { Resolving } from '../find/resolve.ts'
import { isId } from '../id.ts'
import { typedPath } from '../typed-path.ts'

/** What the words after `wb add` mean. */
export interface Into {
  /** The knowledge base that is named; undefined means the only one. */
  readonly base: string | undefined
  readonly paths: readonly string[]
}

/**
 * Tell a knowledge base from a path: the first of several words is the knowledge base, unless there is a file or a
 * folder of this name and no knowledge base.
 *
 * @throws UsageError  the only word is no path
 */
export async function into(words: readonly string[], cwd: string, resolving: Resolving): Promise<Into> {
  const [first = '', ...rest] = words
  if (rest.length === 0 && !isPath(first, cwd))
    throw new UsageError(`there is no file or folder "${first}"`, [
      'wb add ./my-folder',
      `wb add ${first} ./my-folder    where ${first} is a knowledge base`,
    ])
  if (rest.length === 0 || (isPath(first, cwd) && !(await isBase(first, resolving))))
    return { base: undefined, paths: words }
  return { base: first, paths: rest }
}

/** True of what is there, of a glob, and of `-`. */
function isPath(word: string, cwd: string): boolean {
  return word === '-' || /[*?[\]{}]/.test(word) || existsSync(typedPath(cwd, word))
}

async function isBase(word: string, resolving: Resolving): Promise<boolean> {
  if (isId(word)) return true
  try {
    return await isTaken(aKnowledgeBase.among(resolving, {}), word)
  } catch (error) {
    // Where there is no workspace yet, there is no knowledge base either.
    if (error instanceof WbError && error.code === 'workspace_not_found') return false
    throw error
  }
}
