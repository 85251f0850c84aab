import { type Client, collect } from '../../client/client.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { kb } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { UsageError } from '../errors.ts'
import { isId } from '../id.ts'
import { defaultWorkspace, type Profile } from '../settings/profile.ts'
import { nearestMatch } from '../terminal/nearest-match.ts'
import { explainWorkspaceLimits } from './explain-workspace-limits.ts'

const candidatesShownMax = 8
/** ID of the choice "all of them"; no resource has it. */
const allChoiceId = 'all'

export interface NamedResource {
  id: string
  name: string
  /** Detail that distinguishes resources of the same name. */
  about?: string
}

/** Words, error code and commands for a kind of resource. */
export interface ResourceKind {
  noun: string
  notFoundCode: ErrorCode
  /** Command that lists the resources. */
  listCommand: string
  /** Commands that create the first resource. */
  createCommands: readonly string[]
  /** Returns the command that selects one of several resources. */
  selectCommand?: (name: string) => string
  /** Source of a name that was not typed, such as a file or variable. */
  nameSource?: string | undefined
}

const workspaceKind: ResourceKind = {
  noun: 'workspace',
  notFoundCode: 'workspace_not_found',
  listCommand: 'wb workspaces list',
  createCommands: ['wb kb create handbook     also creates a workspace', 'wb workspaces create demo'],
}
export const knowledgeBaseKind: ResourceKind = {
  noun: 'knowledge base',
  notFoundCode: 'knowledge_base_not_found',
  listCommand: 'wb kb list',
  createCommands: ['wb kb create handbook'],
}

/** The choice of all resources instead of one. */
export interface AllChoice<T> {
  readonly row: T
  /** Command to type for this choice. */
  readonly command: string
}

/**
 * Prompts the user to choose one of several resources, and returns its ID. Undefined if the user cannot be
 * prompted.
 */
export type PromptForChoice = (question: string, choices: readonly NamedResource[]) => Promise<string>

export interface ResolveContext {
  client: Client
  profile: Profile
  promptForChoice?: PromptForChoice
  /** Returns the command line that was typed, with the name of a knowledge base or workspace added. */
  commandWithBase?: (name: string) => string
  commandWithWorkspace?: (name: string) => string
}

/**
 * Finds a workspace by ID or name. Without one, returns the default, else the only workspace, else the one
 * named `default`.
 *
 * @throws WbError workspace_not_found  when no workspace matches; suggests a similar name
 * @throws UsageError                   when several workspaces match
 */
export async function resolveWorkspace(context: ResolveContext, named?: string): Promise<Workspace> {
  const { client, profile } = context
  const said = named ?? profile.workspace
  const nameSource = named === undefined ? profile.workspaceFrom : undefined
  const wanted = said ?? defaultWorkspace(profile)
  if (wanted && isId(wanted)) return showWorkspace(context, wanted, said === undefined)
  const all = await collect(client.items(workspaces.list, {}))
  const implied =
    wanted ?? (all.length > 1 ? all.find(({ name }) => name === 'default')?.workspaceId : undefined)
  try {
    return await pickResource(
      all.map(row => ({ row, id: row.workspaceId, name: row.name })),
      implied,
      { ...workspaceKind, selectCommand: context.commandWithWorkspace, nameSource },
      context.promptForChoice,
    )
  } catch (error) {
    throw error instanceof WbError ? await explainMissingWorkspace(error, client, all) : error
  }
}

/** Explains the error if the caller may see only some workspaces. */
async function explainMissingWorkspace(
  error: WbError,
  client: Client,
  seen: readonly Workspace[],
): Promise<WbError> {
  const why = await explainWorkspaceLimits(
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
  context: ResolveContext,
  onMade: (workspace: Workspace) => void,
): Promise<Workspace> {
  const { client, profile } = context
  const first = await collect(client.items(workspaces.list, {}))
  if (first.length > 0 || profile.workspace) return resolveWorkspace(context)
  if ((await explainWorkspaceLimits(client, [])) !== undefined) return resolveWorkspace(context)
  try {
    const made = await client.call(workspaces.create, { body: { name: 'default' } })
    onMade(made)
    return made
  } catch (error) {
    if (error instanceof WbError && error.code === 'workspace_name_conflict') return resolveWorkspace(context)
    throw error
  }
}

async function showWorkspace(
  { client }: ResolveContext,
  workspaceId: string,
  isDefault: boolean,
): Promise<Workspace> {
  try {
    return await client.call(workspaces.show, { params: { workspaceId } })
  } catch (error) {
    if (!isDefault || !(error instanceof WbError) || error.code !== 'workspace_not_found') throw error
    throw new WbError('workspace_not_found', `the default workspace ${workspaceId} no longer exists`, {
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
  context: ResolveContext,
  named?: string,
  every?: (workspaceId: string, bases: readonly KnowledgeBase[]) => E,
): Promise<KnowledgeBase | E> {
  const { client, profile } = context
  const wanted = named ?? profile.knowledgeBase
  const nameSource = named === undefined && wanted !== undefined ? '.wb.yaml' : undefined
  const { workspaceId, name } = await resolveWorkspace(context)
  if (wanted && isId(wanted))
    return client.call(kb.show, { params: { workspaceId, knowledgeBaseId: wanted } })
  const all = await listKnowledgeBases(client, workspaceId)
  const rows = all.map(row => ({ row, id: row.knowledgeBaseId, name: row.name }))
  const noun = `knowledge base in workspace ${name}`
  return pickResource<KnowledgeBase | E>(
    rows,
    wanted,
    { ...knowledgeBaseKind, noun, selectCommand: context.commandWithBase, nameSource },
    context.promptForChoice,
    every && { row: every(workspaceId, all), command: context.commandWithBase?.('--all') ?? '--all' },
  )
}

/** Returns the knowledge bases of a workspace. */
export async function listKnowledgeBases(client: Client, workspaceId: string): Promise<KnowledgeBase[]> {
  return collect(client.items(kb.list, { params: { workspaceId } }))
}

/**
 * Selects one of several resources by ID or name. Without one, returns the only resource, or the user's
 * choice.
 *
 * @param every  further choice for users who have to choose one of several
 * @throws WbError     with the not-found code of the kind, when no resource matches; suggests a similar name
 * @throws UsageError  when several resources match
 */
export async function pickResource<T>(
  all: readonly (NamedResource & { row: T })[],
  wanted: string | undefined,
  kind: ResourceKind,
  choose: PromptForChoice | undefined,
  every?: AllChoice<T>,
): Promise<T> {
  if (wanted === undefined) return pickWithoutName(all, kind, choose, every)
  const matches = all.filter(({ id, name }) => id === wanted || name === wanted)
  if (matches.length === 1) return matches[0]!.row
  if (matches.length > 1)
    throw ambiguousNameError(
      `${countedNoun(matches.length, kind)} are named "${wanted}"`,
      matches,
      kind,
      'id',
    )
  const close = nearestMatch(
    wanted,
    all.map(({ name }) => name),
  )
  const next = close
    ? [`did you mean ${close}?`, kind.listCommand]
    : all.length > 0
      ? [kind.listCommand]
      : kind.createCommands
  const by = kind.nameSource === undefined ? '' : ` (from ${kind.nameSource})`
  throw new WbError(kind.notFoundCode, `no ${kind.noun} is named "${wanted}"${by}`, {
    next,
    didYouMean: close,
  })
}

async function pickWithoutName<T>(
  all: readonly (NamedResource & { row: T })[],
  kind: ResourceKind,
  choose: PromptForChoice | undefined,
  every: AllChoice<T> | undefined,
): Promise<T> {
  if (all.length === 0)
    throw new WbError(kind.notFoundCode, `there is no ${kind.noun} yet`, { next: kind.createCommands })
  if (all.length === 1) return all[0]!.row
  if (!choose) {
    const wanted = every ? 'name one, or search all of them' : 'name one'
    const { message, next } = ambiguousNameError(
      `there are ${countedNoun(all.length, kind)}; ${wanted}`,
      all,
      kind,
      'name',
    )
    throw new UsageError(message, every ? [every.command, ...next] : next)
  }
  const offered = all.map(one => ({
    id: one.id,
    name: isNameShared(one, all)
      ? `${one.name}  ${[one.id, one.about].filter(Boolean).join('  ')}`
      : one.name,
  }))
  const id = await choose(
    `Which ${kind.noun}?`,
    every ? [{ id: allChoiceId, name: 'all of them' }, ...offered] : offered,
  )
  if (every && id === allChoiceId) return every.row
  return all.find(candidate => candidate.id === id)!.row
}

function countedNoun(number: number, { noun }: ResourceKind): string {
  return `${number} ${noun.replace(/^(.*?)( (?:in|of) .*)?$/, '$1s$2')}`
}

/** True if several resources have this name. */
function isNameShared({ name }: NamedResource, all: readonly NamedResource[]): boolean {
  return all.filter(other => other.name === name).length > 1
}

function ambiguousNameError(
  message: string,
  candidates: readonly NamedResource[],
  kind: ResourceKind,
  tell: 'id' | 'name',
): UsageError {
  const typed = (word: string) => kind.selectCommand?.(word) ?? word
  const shown = candidates.slice(0, candidatesShownMax).map(one => {
    if (tell === 'id') return `${one.id}  ${one.about ?? one.name}`
    if (!isNameShared(one, candidates)) return typed(one.name)
    return one.about === undefined ? typed(one.id) : `${typed(one.id)}    ${one.about}`
  })
  return new UsageError(
    message,
    candidates.length > candidatesShownMax ? [...shown, kind.listCommand] : shown,
  )
}
