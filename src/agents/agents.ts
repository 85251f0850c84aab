import { authorize } from '../access/authorize.ts'
import { authorizeDestination } from '../access/authorize-destination.ts'
import type { Caller } from '../access/caller.ts'
import { requireWorkspace, workspaceNotFound } from '../access/require-workspace.ts'
import type { AuthContext } from '../access/subject.ts'
import { unchangedAccess } from '../access/unchanged-access.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { needs } from '../contract/access.ts'
import type { Agent, AgentCreate, AgentPatch } from '../contract/agents.ts'
import { WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { builtInAgentTemplates, createAgentFrom } from '../workspaces/agent-templates.ts'
import { llmKind, rerankingKind, serviceNotFound } from '../workspaces/service-kinds.ts'
import { conversationVisibility } from './conversation-visibility.ts'
import { conversationDeletion } from './conversations.ts'
import { agentNotFound } from './not-found.ts'
import { sendsWithoutApproval } from './tools/permission.ts'
import type { Toolbox } from './tools/toolbox.ts'

/** Maximum number of conversations deleted in one transaction. */
const conversationsPerTransaction = 200
/** Maximum number of attempts to delete an agent. An attempt fails if conversations remain, or the access was changed. */
const deleteAttemptsMax = 1_000

/** A service that an agent uses: the check that the service exists, and the error if it does not. */
interface ServiceBinding {
  readonly check: Write
  readonly notFoundError: WbError
}

/** Agents of workspaces: their prompts, models, knowledge bases and tools. */
export class Agents {
  constructor(
    private readonly deps: { rows: RowStore; pager: Pager; clock: Clock; tools: Pick<Toolbox, 'require'> },
  ) {}

  /** @throws workspace_not_found, invalid_cursor */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<Agent>> {
    await requireWorkspace(this.deps.rows, workspaceId)
    return this.deps.pager.page(tables.agents, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  /**
   * @throws workspace_not_found
   * @throws forbidden                                           row-level access is on, the agent can send text without an
   *                                                             approval, and the caller lacks `manage:access`
   * @throws llm_service_not_found, reranking_service_not_found  a service of the agent does not exist
   * @throws agent_tool_unresolved                               some of its tools are not available in the workspace
   * @throws conflict                                            the ID is already in use
   */
  async create(
    workspaceId: string,
    { agentId = newId(), ...fields }: AgentCreate,
    auth: AuthContext,
  ): Promise<Agent> {
    await requireWorkspace(this.deps.rows, workspaceId)
    await this.deps.tools.require(workspaceId, fields.toolIds, auth)
    const now = timestamp(this.deps.clock)
    const agent = { ...fields, workspaceId, agentId, createdAt: now, updatedAt: now }
    await this.authorizeSending(agent, auth)
    return this.insert(agent)
  }

  /**
   * Creates an agent from a template. The agent uses the oldest LLM service of the workspace, if there is one.
   *
   * @throws workspace_not_found, agent_template_not_found
   * @throws llm_service_not_found  the service was deleted in the meantime
   */
  async createFromTemplate(workspaceId: string, templateId: string): Promise<Agent> {
    const { rows, clock } = this.deps
    await requireWorkspace(rows, workspaceId)
    const template = builtInAgentTemplates.find(candidate => candidate.templateId === templateId)
    if (!template) throw new WbError('agent_template_not_found', `agent template '${templateId}' not found`)
    const byWorkspace = { index: 'byWorkspace', prefix: [workspaceId], limit: 1 }
    const [first] = await rows.list(tables.llmServices, byWorkspace)
    const llmServiceId = first?.row.llmServiceId ?? null
    return this.insert(createAgentFrom(template, { workspaceId, llmServiceId, createdAt: timestamp(clock) }))
  }

  /** @throws workspace_not_found, agent_not_found */
  async get(workspaceId: string, agentId: string): Promise<Agent> {
    const stored = await this.deps.rows.get(tables.agents, [workspaceId, agentId])
    if (stored) return stored.row
    await requireWorkspace(this.deps.rows, workspaceId)
    throw agentNotFound(agentId)
  }

  /**
   * Changes some fields. Does not check the availability of tools that the agent already lists.
   *
   * @throws workspace_not_found, agent_not_found
   * @throws forbidden  row-level access is on, the changed agent can send text without an approval, and the caller lacks
   *                    `manage:access`
   * @throws llm_service_not_found, reranking_service_not_found, agent_tool_unresolved
   */
  async update(workspaceId: string, agentId: string, patch: AgentPatch, auth: AuthContext): Promise<Agent> {
    const { rows, clock, tools } = this.deps
    const { toolIds: listedIds } = await this.get(workspaceId, agentId)
    await tools.require(
      workspaceId,
      (patch.toolIds ?? []).filter(id => !listedIds.includes(id)),
      auth,
    )
    const bindings = serviceBindings(workspaceId, patch)
    const now = timestamp(clock)
    const changed = await changeRow(
      rows,
      tables.agents,
      [workspaceId, agentId],
      async row => {
        const agent = { ...row, ...patch, updatedAt: now }
        await this.authorizeSending(agent, auth)
        return agent
      },
      () => bindings.map(({ check }) => check),
    )
    if ('absent' in changed) throw agentNotFound(agentId)
    if ('failedCheck' in changed) throw bindings[changed.failedCheck.at]!.notFoundError
    return changed.row
  }

  /**
   * Deletes an agent with its conversations and their messages. Checks the access of the caller in every transaction.
   * Deletes the agent last, so that a failed request can be repeated.
   *
   * @returns the deleted agent
   * @throws workspace_not_found, agent_not_found
   * @throws unauthorized, forbidden  the caller lost its access in the meantime; some conversations may have been deleted
   * @throws forbidden                the caller may not see all conversations, and lacks `manage:access`
   * @throws conflict                 new conversations were created during every attempt
   */
  async delete(
    workspaceId: string,
    agentId: string,
    caller: Pick<Caller, 'auth' | 'reauthorize'>,
  ): Promise<Agent> {
    const { rows } = this.deps
    const agent = await this.get(workspaceId, agentId)
    const agentQuery = { index: 'byAgent', prefix: [workspaceId, agentId] }
    for (let attempt = 0; attempt < deleteAttemptsMax; attempt++) {
      const checks = await unchangedAccess(rows, workspaceId, caller)
      await caller.reauthorize()
      const visibility = conversationVisibility(await requireWorkspace(rows, workspaceId), caller.auth)
      if (visibility.kind !== 'all') authorize({ rule: needs('manage:access'), workspaceId }, caller)
      const page = await rows.list(tables.conversations, {
        ...agentQuery,
        limit: conversationsPerTransaction,
      })
      if (page.length > 0)
        await rows.atomic([...checks, ...page.flatMap(({ row }) => conversationDeletion(row))])
      const outcome = await rows.atomic([
        ...checks,
        { op: 'requireNone', table: tables.conversations, ...agentQuery },
        { op: 'delete', table: tables.agents, key: [workspaceId, agentId] },
      ])
      if (outcome.ok) return agent
      if (outcome.reason === 'absent' && outcome.at > checks.length) throw agentNotFound(agentId)
    }
    throw new WbError(
      'conflict',
      `agent '${agentId}' was not deleted, because new conversations were created during every attempt`,
      {
        hint: 'Retry the delete.',
      },
    )
  }

  /** @throws workspace_not_found, forbidden */
  private async authorizeSending(agent: Agent, auth: AuthContext): Promise<void> {
    if (sendsWithoutApproval(agent))
      authorizeDestination(await requireWorkspace(this.deps.rows, agent.workspaceId), { auth })
  }

  private async insert(agent: Agent): Promise<Agent> {
    const bindings = serviceBindings(agent.workspaceId, agent)
    const outcome = await this.deps.rows.atomic([
      { op: 'require', table: tables.workspaces, key: [agent.workspaceId] },
      ...bindings.map(({ check }) => check),
      { op: 'insert', table: tables.agents, row: agent },
    ])
    if (outcome.ok) return agent
    if (outcome.at === 0) throw workspaceNotFound(agent.workspaceId)
    const conflict = new WbError('conflict', `agent with id '${agent.agentId}' already exists`)
    throw bindings[outcome.at - 1]?.notFoundError ?? conflict
  }
}

function serviceBindings(
  workspaceId: string,
  { llmServiceId, rerankingServiceId }: Pick<AgentPatch, 'llmServiceId' | 'rerankingServiceId'>,
): ServiceBinding[] {
  const bindings: ServiceBinding[] = []
  if (llmServiceId)
    bindings.push({
      check: { op: 'require', table: tables.llmServices, key: [workspaceId, llmServiceId] },
      notFoundError: serviceNotFound(llmKind, llmServiceId),
    })
  if (rerankingServiceId)
    bindings.push({
      check: { op: 'require', table: tables.rerankingServices, key: [workspaceId, rerankingServiceId] },
      notFoundError: serviceNotFound(rerankingKind, rerankingServiceId),
    })
  return bindings
}
