import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { usesOidc } from '../config/config-checks.ts'
import type { Config } from '../config/schema.ts'
import type { CollectionKey } from '../storage/content.ts'
import type { Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { AuditRecords } from './audit-records.ts'
import { AuditRetention } from './audit-retention.ts'
import { AuditTrail } from './audit-trail.ts'
import { Principals } from './principals.ts'
import { auditHandlers, policyHandlers, principalHandlers } from './routes.ts'
import { type AccessOf, RowAccessRules } from './row-access.ts'
import { scopeToWorkspace } from './scope-to-workspace.ts'
import type { AuthContext } from './subject.ts'

export interface AccessDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  readonly config: Config
  /** ID of this process, recorded for actions of the runtime itself. */
  readonly replicaId: string
}

/** Creates access control and the audit trail, with the handlers of their routes by topic. */
export function openAccess(deps: AccessDependencies) {
  const audit = new AuditTrail(deps)
  const retention = new AuditRetention({ ...deps, trail: audit, ...deps.config.runtime.audit })
  const { auth } = deps.config
  const mapsRoles = usesOidc(auth) && auth.oidc?.roleMapping != null
  const principals = new Principals({ ...deps, mapsRoles })
  const rules = new RowAccessRules(deps.rows, principals)
  return {
    audit,
    /** Returns a caller with the rights that it has in one workspace. */
    inWorkspace: (auth: AuthContext, workspaceId: string) =>
      scopeToWorkspace(auth, workspaceId, (...ids) => principals.roleOf(...ids)),
    /** Returns what an actor may see in a workspace now. */
    rowAccess: (...args: Parameters<AccessOf>) => rules.of(...args),
    learnableRows: (key: CollectionKey) => rules.learnableRows(key),
    /** Deletes old audit records now, and then regularly. */
    start: () => retention.start(),
    async close() {
      await retention.close()
      await audit.close()
    },
    handlers: {
      audit: auditHandlers(new AuditRecords({ ...deps, trail: audit })),
      principals: principalHandlers(principals),
      policy: policyHandlers(deps.rows, principals),
    },
  }
}
