import { LRUCache } from 'lru-cache'
import { WbError } from '../contract/errors.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import type { PolicyDecision } from '../contract/policy.ts'
import type { CollectionKey } from '../storage/content.ts'
import type { Filter } from '../storage/filter.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { Actor, Visibility } from '../storage/visibility.ts'
import type { DecisionDraft } from './decisions/decision-recorder.ts'
import { builtInPolicy, enabledPolicyDsl } from './policy/base-policy.ts'
import { type CompiledPolicy, compilePolicy, toApiFilter, toFilter } from './policy/compile.ts'
import { documentTags } from './policy/document-tags.ts'
import type { ActingPrincipal } from './policy/evaluate.ts'
import { type Policy, parsePolicy } from './policy/parse.ts'
import { toRecordedCaller } from './recorded-caller.ts'
import { requireWorkspace } from './require-workspace.ts'
import { type AuthContext, principalIdOf } from './subject.ts'

const parsedMax = 200

/** The ID and the policy of a knowledge base. */
type PolicyBase = Pick<KnowledgeBase, 'knowledgeBaseId' | 'policyDsl' | 'policyEnabled'>

/** An actor without a principal. */
export const noPrincipal: Actor = { kind: 'principal', principalId: null }

/** The action and the resource that a caller requests access to. Both are recorded in the policy audit. */
export interface AccessTarget {
  readonly action: PolicyDecision['action']
  /** ID of the document or record; absent for all that match. Never use an ID that the caller does not know. */
  readonly resourceId?: string
}

/** A change of rows in a knowledge base, which is not decided yet. */
export interface UndecidedChange {
  /** The rows that the caller may change: those that it may see. */
  readonly visibility: Visibility
  /**
   * Decides and records the change.
   *
   * @param isMatch  true if the caller may see all rows that it changes
   * @throws policy_denied  `isMatch` is false
   */
  authorize(isMatch: boolean): void
}

/**
 * The rows that a caller may see in a workspace. A snapshot of its policies and principals: open it again for every operation,
 * so that changes take effect at once.
 *
 * If row-level access is on, decisions are recorded in the policy audit: each one once per request.
 *
 * @see docs/access.md#row-level-access, docs/access.md#see-the-decisions
 */
export interface RowAccess {
  /** False if row-level access is off, and everyone sees all rows. */
  readonly isEnabled: boolean
  readonly actor: Actor
  /** ID of the principal that owns what the caller adds; null if row-level access is off, or the caller has none. */
  readonly ownerId: string | null
  /** @throws policy_principal_required  row-level access is on, and the caller is not a principal */
  requirePrincipal(): void
  /**
   * Returns the rows of a knowledge base that the caller may see, and records that they limit a read.
   *
   * @throws policy_principal_required  row-level access is on, and the caller is not a principal
   */
  visibility(base: PolicyBase, target: AccessTarget): Visibility
  /** Records that the caller requested a row that does not exist or is hidden from it. */
  recordDenial(base: PolicyBase, target: AccessTarget): void
  /**
   * Returns what `decide` returns for the rows that the caller may see. Records a read only if `decide` returns true, so that
   * the decisions do not reveal a row that the caller does not know, such as the document of a job.
   *
   * @throws policy_principal_required  row-level access is on, and the caller is not a principal
   */
  canRead(
    base: PolicyBase,
    target: AccessTarget,
    decide: (visibility: Visibility) => boolean | Promise<boolean>,
  ): Promise<boolean>
  /** Starts a change of rows. A caller that is not a principal cannot change any rows. */
  openChange(base: PolicyBase, target: AccessTarget): UndecidedChange
  /** Returns true if the caller may see all rows of a knowledge base. Not recorded, because nothing is read. */
  seesAll(base: PolicyBase): boolean
  /** Returns {@link documentTags} for what the caller may see. Not recorded, because nothing is read. */
  documentTags(base: PolicyBase): readonly string[] | undefined
}

/** Returns the visibility of all rows, for work of the runtime itself. Never use it for the response to a caller. */
export function fullVisibility(): Visibility {
  return toVisibility(undefined)
}

/** Returns what an actor may see in a workspace now. */
export type AccessOf = RowAccessRules['of']

/** Decides which rows callers may see. Only this file creates values of the type `Visibility`. */
export class RowAccessRules {
  readonly #parsed = new LRUCache<string, Policy>({ max: parsedMax })

  constructor(
    private readonly rows: RowStore,
    private readonly principals: {
      actingPrincipal(key: { workspaceId: string; principalId: string }): Promise<ActingPrincipal>
    },
    private readonly decisions: { record(decision: DecisionDraft): void },
  ) {}

  /**
   * Returns what an actor may see in a workspace now.
   *
   * @param recorded  decisions that the request has already recorded, which are not recorded again
   * @throws workspace_not_found
   */
  async of(actor: Actor, workspaceId: string, recorded = new Set<string>()): Promise<RowAccess> {
    const { rlacEnabled } = await requireWorkspace(this.rows, workspaceId)
    const { principalId, viewedBy } = actor
    if (!rlacEnabled) return unrestrictedAccess(actor)
    const record: RecordDecision = (base, target, outcome) => {
      const { knowledgeBaseId } = base
      const { action, resourceId = '*' } = target
      const subject = { principalId, ...(viewedBy && { viewedBy }) }
      const decision = { workspaceId, ...subject, knowledgeBaseId, resourceId, action, ...outcome }
      const key = JSON.stringify(decision)
      if (recorded.has(key)) return
      recorded.add(key)
      this.decisions.record(decision)
    }
    return new RecordedAccess(actor, await this.#deciderFor(actor, workspaceId), record)
  }

  /** Returns a function that returns what an actor may see in a knowledge base. */
  async #deciderFor(actor: Actor, workspaceId: string): Promise<(base: PolicyBase) => RowDecision> {
    const { principalId } = actor
    if (actor.kind === 'operator') return () => everythingForOperator
    if (principalId === null) return () => nothingWithoutPrincipal
    const principal = await this.principals.actingPrincipal({ workspaceId, principalId })
    return base => {
      const compiled = this.#compileFor(principal, base)
      return { kind: 'policy', visibility: visibilityOf(compiled), compiled }
    }
  }

  /**
   * Returns the rows of a collection that every principal may see, whatever its ID and attributes are; all rows if row-level
   * access is off. The built-in embedder learns from these rows only.
   *
   * @see docs/security.md#rule-4
   */
  async learnableRows({ workspaceId, name }: CollectionKey): Promise<Visibility> {
    const workspace = await this.rows.get(tables.workspaces, [workspaceId])
    if (!workspace?.row.rlacEnabled) return fullVisibility()
    const query = { index: 'byCollection', prefix: [workspaceId, name], limit: 1 }
    const [base] = await this.rows.list(tables.knowledgeBases, query)
    return base ? visibilityOf(this.#compileFor(unknownPrincipal, base.row)) : noRows
  }

  #compileFor(principal: ActingPrincipal, base: PolicyBase): CompiledPolicy {
    const dsl = enabledPolicyDsl(base)
    return compilePolicy(dsl === null ? builtInPolicy.policy : this.#parse(dsl), principal)
  }

  #parse(dsl: string): Policy {
    const policy = this.#parsed.get(dsl) ?? parsePolicy(dsl)
    this.#parsed.set(dsl, policy)
    return policy
  }
}

function visibilityOf(compiled: CompiledPolicy): Visibility {
  const isEverything = compiled.kind === 'constant' && compiled.value
  return isEverything ? fullVisibility() : toVisibility(toFilter(compiled))
}

const noRows = toVisibility({ kind: 'or', parts: [] })

/** A principal without an ID and attributes. A row that it can see is visible to every principal. */
const unknownPrincipal: ActingPrincipal = { id: null, attributes: {} }

/** ID of the principal that the bootstrap token acts as. It sees all rows. */
const bootstrapPrincipal = 'admin'

/** Returns the actor of a request. A caller that views the workspace as a principal acts as that principal. */
export function actorOf(auth: AuthContext, workspaceId: string): Actor {
  const principalId = principalIdOf(auth)
  if (auth.viewedPrincipalId !== null)
    return { kind: 'principal', principalId, viewedBy: toRecordedCaller(auth, workspaceId) }
  if (auth.subject?.type === 'system') return { kind: 'operator', principalId: null }
  if (auth.subject?.type === 'bootstrap') return { kind: 'operator', principalId: bootstrapPrincipal }
  return { kind: 'principal', principalId }
}

/** The rows that an actor may see in a knowledge base, and why. */
type RowDecision =
  | { readonly kind: 'operator' | 'noPrincipal'; readonly visibility: Visibility }
  | { readonly kind: 'policy'; readonly visibility: Visibility; readonly compiled: CompiledPolicy }

const everythingForOperator: RowDecision = { kind: 'operator', visibility: fullVisibility() }
const nothingWithoutPrincipal: RowDecision = { kind: 'noPrincipal', visibility: noRows }

type Outcome = Pick<PolicyDecision, 'decision' | 'reason' | 'compiledFilterJson'>
type RecordDecision = (base: PolicyBase, target: AccessTarget, outcome: Outcome) => void

/** Access in a workspace with row-level access. */
class RecordedAccess implements RowAccess {
  readonly isEnabled = true
  readonly ownerId: string | null

  constructor(
    readonly actor: Actor,
    private readonly decide: (base: PolicyBase) => RowDecision,
    private readonly record: RecordDecision,
  ) {
    this.ownerId = actor.principalId
  }

  requirePrincipal(): void {
    if (this.actor.kind !== 'operator' && this.actor.principalId === null) throw principalRequired()
  }

  visibility(base: PolicyBase, target: AccessTarget): Visibility {
    const decided = this.#requireDecision(base, target)
    this.record(base, target, readOutcome(decided))
    return decided.visibility
  }

  recordDenial(base: PolicyBase, target: AccessTarget): void {
    const { kind, visibility } = this.decide(base)
    if (visibility.filter) this.record(base, target, changeOutcome(kind, false))
  }

  async canRead(
    base: PolicyBase,
    target: AccessTarget,
    decide: (visibility: Visibility) => boolean | Promise<boolean>,
  ): Promise<boolean> {
    const decided = this.#requireDecision(base, target)
    const isVisible = await decide(decided.visibility)
    if (isVisible) this.record(base, target, readOutcome(decided))
    return isVisible
  }

  openChange(base: PolicyBase, target: AccessTarget): UndecidedChange {
    const { kind, visibility } = this.decide(base)
    return {
      visibility,
      authorize: isMatch => {
        this.record(base, target, changeOutcome(kind, isMatch))
        requireMatch(isMatch)
      },
    }
  }

  seesAll(base: PolicyBase): boolean {
    return !this.decide(base).visibility.filter
  }

  documentTags(base: PolicyBase): readonly string[] | undefined {
    return documentTags(base.knowledgeBaseId, this.decide(base).visibility)
  }

  /** @throws policy_principal_required */
  #requireDecision(base: PolicyBase, target: AccessTarget): RowDecision {
    const decided = this.decide(base)
    if (decided.kind !== 'noPrincipal') return decided
    this.record(base, target, outcomeOf('deny', 'no_principal'))
    throw principalRequired()
  }
}

/** Returns access to a workspace without row-level access. Nothing is recorded. */
function unrestrictedAccess(actor: Actor): RowAccess {
  const visibility = fullVisibility()
  return {
    isEnabled: false,
    actor,
    ownerId: null,
    requirePrincipal() {},
    visibility: () => visibility,
    recordDenial() {},
    canRead: async (_base, _target, decide) => decide(visibility),
    openChange: () => ({ visibility, authorize: requireMatch }),
    seesAll: () => true,
    documentTags: () => undefined,
  }
}

function outcomeOf(decision: Outcome['decision'], reason: string): Outcome {
  return { decision, reason, compiledFilterJson: null }
}

function readOutcome(decided: RowDecision): Outcome {
  if (decided.kind !== 'policy') return outcomeOf('allow', 'operator')
  const compiledFilterJson = JSON.stringify(toApiFilter(decided.compiled))
  return { decision: 'filter', reason: 'filtered', compiledFilterJson }
}

function changeOutcome(kind: RowDecision['kind'], isMatch: boolean): Outcome {
  if (isMatch) return outcomeOf('allow', kind === 'operator' ? 'operator' : 'match')
  return outcomeOf('deny', kind === 'noPrincipal' ? 'no_principal' : 'no_match')
}

/** @throws policy_denied */
function requireMatch(isMatch: boolean): void {
  if (!isMatch) throw policyDenied()
}

function principalRequired(): WbError {
  return new WbError(
    'policy_principal_required',
    'row-level access is on in this workspace, and the request has no principal',
    {
      hint: 'Sign in, or use an API key of the workspace. On the machine with the data directory, --as-operator shows everything.',
    },
  )
}

/** The error for a change of a row that the caller may not see. It does not reveal whether the row exists. */
function policyDenied(): WbError {
  return new WbError(
    'policy_denied',
    'the policy of the knowledge base does not let you change this document',
  )
}

function toVisibility(filter: Filter | undefined): Visibility {
  return { filter } as Visibility
}
