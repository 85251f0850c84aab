import { type Client, everything } from '../../client/client.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { kb } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { UsageError } from '../faults.ts'
import { isId } from '../id.ts'
import { defaultWorkspace, type Profile } from '../settings/profile.ts'
import { nearest } from '../terminal/nearest.ts'
import { boundTo } from './reach.ts'

const candidatesShown = 8
/** ID of the choice "all of them"; no resource has it. */
const everyId = 'all'

export interface Named {
  id: string
  name: string
  /** Detail that distinguishes resources of the same name. */
  about?: string
}

/** Words, error code and commands for a kind of resource. */
export interface Kind {
  one: string
  code: ErrorCode
  /** Command that lists the resources. */
  list: string
  /** Commands that create the first resource. */
  create: readonly string[]
  /** Returns the command that selects one of several resources. */
  naming?: (name: string) => string
  /** Source of a name that was not typed, such as a file or variable. */
  namedBy?: string | undefined
}

const workspaceKind: Kind = {
  one: 'workspace',
  code: 'workspace_not_found',
  list: 'wb workspaces list',
  create: ['wb kb create handbook     makes a workspace too', 'wb workspaces create demo'],
}
export const knowledgeBaseKind: Kind = {
  one: 'knowledge base',
  code: 'knowledge_base_not_found',
  list: 'wb kb list',
  create: ['wb kb create handbook'],
}

/** The choice of all resources instead of one. */
export interface Every<T> {
  readonly row: T
  /** Command to type for this choice. */
  readonly line: string
}

/**
 * Prompts the user to choose one of several resources, and returns its ID. Undefined if the user cannot be
 * prompted.
 */
export type Choose = (question: string, choices: readonly Named[]) => Promise<string>

export interface Resolving {
  client: Client
  profile: Profile
  choose?: Choose
  /** Returns the command line that was typed, with the name of a knowledge base or workspace added. */
  withBase?: (name: string) => string
  withWorkspace?: (name: string) => string
}

/**
 * Finds a workspace by ID or name. Without one, returns the default, else the only workspace, else the one
 * named `default`.
 *
 * @throws WbError workspace_not_found  when no workspace matches; suggests a similar name
 * @throws UsageError                   when several workspaces match
 */
export async function resolveWorkspace(resolving: Resolving, named?: string): Promise<Workspace> {
  const { client, profile } = resolving
  const said = named ?? profile.workspace
  const namedBy = named === undefined ? profile.workspaceFrom : undefined
  const wanted = said ?? defaultWorkspace(profile)
  if (wanted && isId(wanted)) return showWorkspace(resolving, wanted, said === undefined)
  const all = await everything(client.items(workspaces.list, {}))
  const implied =
    wanted ?? (all.length > 1 ? all.find(({ name }) => name === 'default')?.workspaceId : undefined)
  try {
    return await pick(
      all.map(row => ({ row, id: row.workspaceId, name: row.name })),
      implied,
      { ...workspaceKind, naming: resolving.withWorkspace, namedBy },
      resolving.choose,
    )
  } catch (error) {
    throw error instanceof WbError ? await orBound(error, client, all) : error
  }
}

/** Explains the error if the caller may see only some workspaces. */
async function orBound(error: WbError, client: Client, seen: readonly Workspace[]): Promise<WbError> {
  const why = await boundTo(
    client,
    seen.map(({ name }) => name),
  )
  if (why === undefined) return error
  const [message, next] = seen.length > 0 ? [`${error.message}; ${why}`, ['wb workspaces list']] : [why, []]
  return new WbError(error.code, message, { ...error.facts, next })
}

/**
 * Resolves the workspace. If the runtime has no workspaces, creates one named `default`.
 *
 * @param onMade  called with a workspace that was created
 */
export async function workspaceOrDefault(
  resolving: Resolving,
  onMade: (workspace: Workspace) => void,
): Promise<Workspace> {
  const { client, profile } = resolving
  const first = await everything(client.items(workspaces.list, {}))
  if (first.length > 0 || profile.workspace) return resolveWorkspace(resolving)
  if ((await boundTo(client, [])) !== undefined) return resolveWorkspace(resolving)
  try {
    const made = await client.call(workspaces.create, { body: { name: 'default' } })
    onMade(made)
    return made
  } catch (error) {
    if (error instanceof WbError && error.code === 'workspace_name_conflict')
      return resolveWorkspace(resolving)
    throw error
  }
}

async function showWorkspace(
  { client }: Resolving,
  workspaceId: string,
  isDefault: boolean,
): Promise<Workspace> {
  try {
    return await client.call(workspaces.show, { params: { workspaceId } })
  } catch (error) {
    if (!isDefault || !(error instanceof WbError) || error.code !== 'workspace_not_found') throw error
    throw new WbError('workspace_not_found', `the default workspace ${workspaceId} is gone`, {
      ...error.facts,
      next: ['wb workspaces list', 'wb workspaces use NAME'],
    })
  }
}

/**
 * Finds a knowledge base by ID or name. Without one, returns the one of `.wb.yaml`, else the only one of the
 * workspace.
 *
 * @param every  returns the result for all knowledge bases; for commands with the flag `--all`
 * @throws WbError knowledge_base_not_found  when no knowledge base matches; suggests a similar name
 * @throws UsageError                        when several knowledge bases match
 */
export async function resolveKnowledgeBase<E = never>(
  resolving: Resolving,
  named?: string,
  every?: (workspaceId: string, bases: readonly KnowledgeBase[]) => E,
): Promise<KnowledgeBase | E> {
  const { client, profile } = resolving
  const wanted = named ?? profile.knowledgeBase
  const namedBy = named === undefined && wanted !== undefined ? '.wb.yaml' : undefined
  const { workspaceId, name } = await resolveWorkspace(resolving)
  if (wanted && isId(wanted))
    return client.call(kb.show, { params: { workspaceId, knowledgeBaseId: wanted } })
  const all = await everyBase(client, workspaceId)
  const rows = all.map(row => ({ row, id: row.knowledgeBaseId, name: row.name }))
  const one = `knowledge base in workspace ${name}`
  return pick<KnowledgeBase | E>(
    rows,
    wanted,
    { ...knowledgeBaseKind, one, naming: resolving.withBase, namedBy },
    resolving.choose,
    every && { row: every(workspaceId, all), line: resolving.withBase?.('--all') ?? '--all' },
  )
}

/** Returns the knowledge bases of a workspace. */
export async function everyBase(client: Client, workspaceId: string): Promise<KnowledgeBase[]> {
  return everything(client.items(kb.list, { params: { workspaceId } }))
}

/**
 * Selects one of several resources by ID or name. Without one, returns the only resource, or the user's
 * choice.
 *
 * @param every  further choice for users who have to choose one of several
 * @throws WbError     with the not-found code of the kind, when no resource matches; suggests a similar name
 * @throws UsageError  when several resources match
 */
export async function pick<T>(
  all: readonly (Named & { row: T })[],
  wanted: string | undefined,
  kind: Kind,
  choose: Choose | undefined,
  every?: Every<T>,
): Promise<T> {
  if (wanted === undefined) return only(all, kind, choose, every)
  const matches = all.filter(({ id, name }) => id === wanted || name === wanted)
  if (matches.length === 1) return matches[0]!.row
  if (matches.length > 1)
    throw ambiguous(`${counted(matches.length, kind)} are named "${wanted}"`, matches, kind, 'id')
  const close = nearest(
    wanted,
    all.map(({ name }) => name),
  )
  const next = close ? [`did you mean ${close}?`, kind.list] : all.length > 0 ? [kind.list] : kind.create
  const by = kind.namedBy === undefined ? '' : `, which ${kind.namedBy} names`
  throw new WbError(kind.code, `no ${kind.one} is named "${wanted}"${by}`, { next, didYouMean: close })
}

async function only<T>(
  all: readonly (Named & { row: T })[],
  kind: Kind,
  choose: Choose | undefined,
  every: Every<T> | undefined,
): Promise<T> {
  if (all.length === 0) throw new WbError(kind.code, `there is no ${kind.one} yet`, { next: kind.create })
  if (all.length === 1) return all[0]!.row
  if (!choose) {
    const wanted = every ? 'name one, or search all' : 'name the one that is meant'
    const { message, next } = ambiguous(
      `there are ${counted(all.length, kind)}; ${wanted}`,
      all,
      kind,
      'name',
    )
    throw new UsageError(message, every ? [every.line, ...next] : next)
  }
  const offered = all.map(one => ({
    id: one.id,
    name: isShared(one, all) ? `${one.name}  ${[one.id, one.about].filter(Boolean).join('  ')}` : one.name,
  }))
  const id = await choose(
    `Which ${kind.one}?`,
    every ? [{ id: everyId, name: 'all of them' }, ...offered] : offered,
  )
  if (every && id === everyId) return every.row
  return all.find(candidate => candidate.id === id)!.row
}

function counted(number: number, { one }: Kind): string {
  return `${number} ${one.replace(/^(.*?)( (?:in|of) .*)?$/, '$1s$2')}`
}

/** True if several resources have this name. */
function isShared({ name }: Named, all: readonly Named[]): boolean {
  return all.filter(other => other.name === name).length > 1
}

function ambiguous(
  message: string,
  candidates: readonly Named[],
  kind: Kind,
  tell: 'id' | 'name',
): UsageError {
  const typed = (word: string) => kind.naming?.(word) ?? word
  const shown = candidates.slice(0, candidatesShown).map(one => {
    if (tell === 'id') return `${one.id}  ${one.about ?? one.name}`
    if (!isShared(one, candidates)) return typed(one.name)
    return one.about === undefined ? typed(one.id) : `${typed(one.id)}    ${one.about}`
  })
  return new UsageError(message, candidates.length > candidatesShown ? [...shown, kind.list] : shown)
}
