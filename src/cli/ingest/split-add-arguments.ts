import { existsSync } from 'node:fs'
import { WbError } from '../../contract/errors.ts'
import { knowledgeBaseChoices } from '../command/choices.ts'
import { isNameTaken } from '../command/existing-arg.ts'
import { UsageError } from '../errors.ts'
import type { ResolveContext } from '../find/resolve.ts'
import { isId } from '../id.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { isRemote } from './with-sources.ts'

/** Arguments of `wb add`. */
export interface AddArguments {
  /** Name or ID of the knowledge base; undefined for the only knowledge base. */
  readonly base: string | undefined
  readonly paths: readonly string[]
}

/**
 * Separates the knowledge base from the paths. If there are several words, the first is the knowledge base, unless it
 * is a path and no knowledge base has this name. A single word is always a path.
 *
 * @throws UsageError  the only word is not a path
 */
export async function splitAddArguments(
  words: readonly string[],
  cwd: string,
  context: ResolveContext,
): Promise<AddArguments> {
  const [first = '', ...rest] = words
  if (rest.length === 0 && !isPath(first, cwd))
    throw new UsageError(`there is no file or folder "${first}"`, [
      'wb add ./my-folder',
      `wb add ${first} ./my-folder    if ${first} is a knowledge base`,
    ])
  if (rest.length === 0 || (isPath(first, cwd) && !(await isBaseName(first, context))))
    return { base: undefined, paths: words }
  return { base: first, paths: rest }
}

/** Returns true for an existing path, a URL, a glob, or `-`. */
function isPath(word: string, cwd: string): boolean {
  return word === '-' || isRemote(word) || /[*?[\]{}]/.test(word) || existsSync(resolveTypedPath(cwd, word))
}

async function isBaseName(word: string, context: ResolveContext): Promise<boolean> {
  if (isId(word)) return true
  try {
    return await isNameTaken(knowledgeBaseChoices.list(context, {}), word)
  } catch (error) {
    // Without a workspace, there are no knowledge bases.
    if (error instanceof WbError && error.code === 'workspace_not_found') return false
    throw error
  }
}
