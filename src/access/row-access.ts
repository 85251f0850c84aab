import { LRUCache } from 'lru-cache'
import { WbError } from '../contract/errors.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import type { CollectionKey } from '../storage/content.ts'
import type { Filter } from '../storage/filter.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { Actor, Visibility } from '../storage/visibility.ts'
import { compilePolicy, toFilter } from './policy/compile.ts'
import type { ActingPrincipal } from './policy/evaluate.ts'
import { type Policy, parsePolicy } from './policy/parse.ts'
import { requireWorkspace } from './require-workspace.ts'
import { type AuthContext, principalIdOf } from './subject.ts'

/** The policy of knowledge bases without an enabled policy. */
const builtInPolicy = parsePolicy(
  "$principal.admin = 'true' OR current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)",
)
const parsedMax = 200

/** The policy fields of a knowledge base. */
type PolicyFields = Pick<KnowledgeBase, 'policyDsl' | 'policyEnabled'>

/** An actor that is no principal. */
export const noPrincipal: Actor = { kind: 'principal', principalId: null }

/**
 * The rows that a caller may see in a workspace, at the moment when it was read. Read it again for every operation, so that a
 * change of a policy or a principal takes effect at once.
 *
 * @see docs/access.md#row-level-access
 */
export interface RowAccess {
  /** False if row-level access is off, and everyone sees all rows. */
  readonly isEnabled: boolean
  readonly actor: Actor
  /** ID of the principal that owns what the caller adds; null if row-level access is off, or the caller has none. */
  readonly ownerId: string | null
  /** @throws policy_principal_required  row-level access is on, and the caller is no principal */
  requirePrincipal(): void
  /**
   * Returns the rows of a knowledge base that the caller may see.
   *
   * @throws policy_principal_required  row-level access is on, and the caller is no principal
   */
  visibility(base: PolicyFields): Visibility
  /** Like {@link visibility}, but a caller that is no principal may see no rows. */
  visibleOrNone(base: PolicyFields): Visibility
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
  ) {}

  /**
   * Returns what an actor may see in a workspace now.
   *
   * @throws workspace_not_found
   */
  async of(actor: Actor, workspaceId: string): Promise<RowAccess> {
    const { rlacEnabled } = await requireWorkspace(this.rows, workspaceId)
    const { principalId } = actor
    if (!rlacEnabled) return unrestricted({ isEnabled: false, actor, ownerId: null })
    if (actor.kind === 'operator') return unrestricted({ isEnabled: true, actor, ownerId: principalId })
    if (principalId === null) return { isEnabled: true, actor, ownerId: null, ...withoutPrincipal }
    const principal = await this.principals.actingPrincipal({ workspaceId, principalId })
    const visibility = (base: PolicyFields) => this.#visibilityOf(principal, base)
    return { isEnabled: true, actor, ownerId: principalId, ...withVisibility(visibility) }
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
    return base ? this.#visibilityOf(unknownPrincipal, base.row) : noRows
  }

  #visibilityOf(principal: ActingPrincipal, { policyDsl, policyEnabled }: PolicyFields): Visibility {
    const policy = policyEnabled && policyDsl !== null ? this.#parse(policyDsl) : builtInPolicy
    const compiled = compilePolicy(policy, principal)
    if (compiled.kind === 'constant' && compiled.value) return toVisibility(undefined)
    return toVisibility(toFilter(compiled))
  }

  #parse(dsl: string): Policy {
    const policy = this.#parsed.get(dsl) ?? parsePolicy(dsl)
    this.#parsed.set(dsl, policy)
    return policy
  }
}

const noRows = toVisibility({ kind: 'or', parts: [] })

/** A principal of which nothing is known. What a policy shows to it, it shows to every principal. */
const unknownPrincipal: ActingPrincipal = { id: null, attributes: {} }

/** ID of the principal as which the bootstrap token acts. It sees all rows. */
const bootstrapPrincipal = 'admin'

/** Returns the actor of a request. A caller that views a workspace as a principal acts as that principal. */
export function actorOf(auth: AuthContext): Actor {
  const principalId = principalIdOf(auth)
  if (auth.viewedPrincipalId !== null) return { kind: 'principal', principalId }
  if (auth.subject?.type === 'system') return { kind: 'operator', principalId: null }
  if (auth.subject?.type === 'bootstrap') return { kind: 'operator', principalId: bootstrapPrincipal }
  return { kind: 'principal', principalId }
}

type Visibilities = Omit<RowAccess, 'isEnabled' | 'actor' | 'ownerId'>

function withVisibility(visibility: RowAccess['visibility']): Visibilities {
  return { requirePrincipal() {}, visibility, visibleOrNone: visibility }
}

function unrestricted(access: Omit<RowAccess, keyof Visibilities>): RowAccess {
  return { ...access, ...withVisibility(fullVisibility) }
}

function throwPrincipalRequired(): never {
  throw new WbError(
    'policy_principal_required',
    'row-level access is on in this workspace, and the request has no principal',
    {
      hint: 'Sign in, or use an API key of the workspace. On the machine with the data directory, --as-operator shows everything.',
    },
  )
}

const withoutPrincipal: Visibilities = {
  requirePrincipal: throwPrincipalRequired,
  visibility: throwPrincipalRequired,
  visibleOrNone: () => noRows,
}

/** The error for a change of a row that the caller may not see. It does not tell whether the row exists. */
export function policyDenied(): WbError {
  return new WbError(
    'policy_denied',
    'the policy of the knowledge base does not let you change this document',
  )
}

function toVisibility(filter: Filter | undefined): Visibility {
  return { filter } as Visibility
}
