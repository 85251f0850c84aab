import { nearestMatch } from '../../base/nearest-match.ts'
import { type Client, collect } from '../../client/client.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import type { KnowledgeBase, ListedKnowledgeBase } from '../../contract/knowledge.ts'
import { kb } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { UsageError } from '../errors.ts'
import { isId } from '../id.ts'
import { defaultWorkspace, type Profile } from '../settings/profile.ts'
import { explainWorkspaceLimits } from './explain-workspace-limits.ts'

const candidatesShownMax = 8
/** ID of the choice that selects all resources. No resource has this ID. */
const allChoiceId = 'all'

export interface NamedResource {
  id: string
  name: string
  /** Detail that distinguishes resources with the same name. */
  detail?: string
}

/** Noun, error code and commands for a kind of resource. */
export interface ResourceKind {
  noun: string
  notFoundCode: ErrorCode
  /** Command that lists the resources. */
  listCommand: string
  /** Commands that create the first resource. */
  createCommands: readonly string[]
  /** Returns the command that creates a resource with this name; undefined if no command does. */
  createCommandFor?: (name: string) => string | undefined
  /** Returns the command that selects a resource by name or ID. */
  selectCommand?: (name: string) => string
  /** Source of the name if it is not an argument, such as a file or an environment variable. */
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

/** An additional choice that selects all resources. */
export interface AllChoice<T> {
  /** Result for this choice. */
  readonly row: T
  /** Command that makes this choice. */
  readonly command: string
}

/** Prompts the user to choose a resource, and returns its ID. */
export type PromptForChoice = (question: string, choices: readonly NamedResource[]) => Promise<string>

export interface ResolveContext {
  client: Client
  profile: Profile
  /** Undefined if there is no terminal for prompts. */
  promptForChoice?: PromptForChoice
  /** Returns the typed command line with a name as the first argument. */
  commandWithName?: (name: string) => string
  /** Returns the typed command line with the name of a workspace added. */
  commandWithWorkspace?: (name: string) => string
}

/**
 * Finds a workspace by ID or name. Without `nameOrId`, returns the workspace of the profile, else the only workspace,
 * else the workspace named `default`, else lets the user choose.
 *
 * @throws WbError workspace_not_found  no workspace matches; suggests a similar name
 * @throws UsageError                   several workspaces match
 */
export async function resolveWorkspace(context: ResolveContext, nameOrId?: string): Promise<Workspace> {
  const { client, profile } = context
  const requested = nameOrId ?? profile.workspace
  const nameSource = nameOrId === undefined ? profile.workspaceSource : undefined
  const selected = requested ?? defaultWorkspace(profile)
  if (selected && isId(selected)) return showWorkspace(context, selected, requested === undefined)
  const all = await collect(client.items(workspaces.list, {}))
  const nameOrDefault =
    selected ?? (all.length > 1 ? all.find(({ name }) => name === 'default')?.workspaceId : undefined)
  try {
    return await pickResource(
      all.map(row => ({ row, id: row.workspaceId, name: row.name })),
      nameOrDefault,
      { ...workspaceKind, selectCommand: context.commandWithWorkspace, nameSource },
      context.promptForChoice,
    )
  } catch (error) {
    throw error instanceof WbError ? await explainMissingWorkspace(error, client, all) : error
  }
}

/** Adds an explanation to the error if the caller can access only some workspaces. */
async function explainMissingWorkspace(
  error: WbError,
  client: Client,
  visible: readonly Workspace[],
): Promise<WbError> {
  const explanation = await explainWorkspaceLimits(
    client,
    visible.map(({ name }) => name),
  )
  if (explanation === undefined) return error
  const [message, next] =
    visible.length > 0 ? [`${error.message}; ${explanation}`, ['wb workspaces list']] : [explanation, []]
  return new WbError(error.code, message, { ...error.facts, next })
}

/**
 * Resolves the workspace. If the runtime has no workspaces, creates one named `default`.
 *
 * @param onCreated  called with the workspace if it was created
 */
export async function workspaceOrDefault(
  context: ResolveContext,
  onCreated: (workspace: Workspace) => void,
): Promise<Workspace> {
  const { client, profile } = context
  const existing = await collect(client.items(workspaces.list, {}))
  if (existing.length > 0 || profile.workspace) return resolveWorkspace(context)
  if ((await explainWorkspaceLimits(client, [])) !== undefined) return resolveWorkspace(context)
  try {
    const created = await client.call(workspaces.create, { body: { name: 'default' } })
    onCreated(created)
    return created
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
    if (!isDefault || !(error instanceof WbError)) throw error
    const { code, facts } = error
    if (code !== 'workspace_not_found' && code !== 'forbidden') throw error
    const message =
      code === 'forbidden'
        ? `your credential has no access to the default workspace ${workspaceId}`
        : `the default workspace ${workspaceId} no longer exists`
    throw new WbError(code, message, { ...facts, next: ['wb workspaces list', 'wb workspaces use NAME'] })
  }
}

/**
 * Finds a knowledge base by ID or name. Without `nameOrId`, returns the knowledge base that `.wb.yaml` selects, else
 * the only one of the workspace, else lets the user choose.
 *
 * @param resultForAll  returns the result if the user chooses all knowledge bases; for commands with the flag `--all`
 * @throws WbError knowledge_base_not_found  no knowledge base matches; suggests a similar name
 * @throws UsageError                        several knowledge bases match
 */
export async function resolveKnowledgeBase<E = never>(
  context: ResolveContext,
  nameOrId?: string,
  resultForAll?: (workspaceId: string, bases: readonly KnowledgeBase[]) => E,
): Promise<KnowledgeBase | E> {
  const { client, profile } = context
  const selected = nameOrId ?? profile.knowledgeBase
  const nameSource = nameOrId === undefined && selected !== undefined ? '.wb.yaml' : undefined
  const { workspaceId, name } = await resolveWorkspace(context)
  if (selected && isId(selected))
    return client.call(kb.show, { params: { workspaceId, knowledgeBaseId: selected } })
  const all = await listKnowledgeBases(client, workspaceId)
  const rows = all.map(row => ({ row, id: row.knowledgeBaseId, name: row.name }))
  const noun = `knowledge base in workspace ${name}`
  return pickResource<KnowledgeBase | E>(
    rows,
    selected,
    { ...knowledgeBaseKind, noun, selectCommand: context.commandWithName, nameSource },
    context.promptForChoice,
    resultForAll && {
      row: resultForAll(workspaceId, all),
      command: context.commandWithName?.('--all') ?? '--all',
    },
  )
}

/** Returns the knowledge bases of a workspace. */
export async function listKnowledgeBases(
  client: Client,
  workspaceId: string,
): Promise<ListedKnowledgeBase[]> {
  return collect(client.items(kb.list, { params: { workspaceId } }))
}

/**
 * Selects a resource by ID or name. Without `nameOrId`, selects the only resource, or lets the user choose.
 *
 * @param choose     prompts the user; undefined if prompts are not possible
 * @param allChoice  additional choice that selects all resources
 * @returns the `row` of the resource
 * @throws WbError     no resource matches; has the `notFoundCode` of the kind, and suggests a similar name
 * @throws UsageError  several resources match
 */
export async function pickResource<T>(
  all: readonly (NamedResource & { row: T })[],
  nameOrId: string | undefined,
  kind: ResourceKind,
  choose: PromptForChoice | undefined,
  allChoice?: AllChoice<T>,
): Promise<T> {
  if (nameOrId === undefined) return pickWithoutName(all, kind, choose, allChoice)
  const matches = all.filter(({ id, name }) => id === nameOrId || name === nameOrId)
  if (matches.length === 1) return matches[0]!.row
  if (matches.length > 1)
    throw ambiguousNameError(
      `${countedNoun(matches.length, kind)} are named "${nameOrId}"`,
      matches,
      kind,
      'id',
    )
  const nearest = nearestMatch(
    nameOrId,
    all.map(({ name }) => name),
  )
  const create = kind.createCommandFor?.(nameOrId)
  const next = create
    ? [create, kind.listCommand]
    : nearest
      ? [`did you mean ${nearest}?`, kind.listCommand]
      : all.length > 0
        ? [kind.listCommand]
        : kind.createCommands
  const source = kind.nameSource === undefined ? '' : ` (from ${kind.nameSource})`
  throw new WbError(kind.notFoundCode, `no ${kind.noun} is named "${nameOrId}"${source}`, {
    next,
    didYouMean: nearest,
  })
}

async function pickWithoutName<T>(
  all: readonly (NamedResource & { row: T })[],
  kind: ResourceKind,
  choose: PromptForChoice | undefined,
  allChoice: AllChoice<T> | undefined,
): Promise<T> {
  if (all.length === 0)
    throw new WbError(kind.notFoundCode, `there is no ${kind.noun} yet`, { next: kind.createCommands })
  if (all.length === 1) return all[0]!.row
  if (!choose) {
    const instruction = allChoice ? 'specify one, or search all of them' : 'specify one'
    const { message, next } = ambiguousNameError(
      `there are ${countedNoun(all.length, kind)}; ${instruction}`,
      all,
      kind,
      'name',
    )
    throw new UsageError(message, allChoice ? [allChoice.command, ...next] : next)
  }
  const choices = all.map(resource => ({
    id: resource.id,
    name: isNameShared(resource, all)
      ? `${resource.name}  ${[resource.id, resource.detail].filter(Boolean).join('  ')}`
      : resource.name,
  }))
  const id = await choose(
    `Which ${kind.noun}?`,
    allChoice ? [{ id: allChoiceId, name: 'all of them' }, ...choices] : choices,
  )
  if (allChoice && id === allChoiceId) return allChoice.row
  return all.find(candidate => candidate.id === id)!.row
}

function countedNoun(number: number, { noun }: ResourceKind): string {
  return `${number} ${noun.replace(/^(.*?)( (?:in|of) .*)?$/, '$1s$2')}`
}

/** Returns true if several resources have this name. */
function isNameShared({ name }: NamedResource, all: readonly NamedResource[]): boolean {
  return all.filter(other => other.name === name).length > 1
}

function ambiguousNameError(
  message: string,
  candidates: readonly NamedResource[],
  kind: ResourceKind,
  label: 'id' | 'name',
): UsageError {
  const suggest = (word: string) => kind.selectCommand?.(word) ?? word
  const suggestions = candidates.slice(0, candidatesShownMax).map(candidate => {
    if (label === 'id') return `${candidate.id}  ${candidate.detail ?? candidate.name}`
    if (!isNameShared(candidate, candidates)) return suggest(candidate.name)
    return candidate.detail === undefined
      ? suggest(candidate.id)
      : `${suggest(candidate.id)}    ${candidate.detail}`
  })
  return new UsageError(
    message,
    candidates.length > candidatesShownMax ? [...suggestions, kind.listCommand] : suggestions,
  )
}
