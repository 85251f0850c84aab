import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { usesOidc } from '../config/config-checks.ts'
import type { Config } from '../config/schema.ts'
import type { CollectionKey } from '../storage/content.ts'
import type { Cursors, Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { AuditRecords } from './audit-records.ts'
import { openAuditRetention } from './audit-retention.ts'
import { AuditTrail } from './audit-trail.ts'
import { DecisionRecorder } from './decisions/decision-recorder.ts'
import { DecisionRecords } from './decisions/decision-records.ts'
import { openDecisionRetention } from './decisions/decision-retention.ts'
import { AccessTools } from './policy/access-tools.ts'
import { Principals } from './principals.ts'
import { deleteFirst } from './record-retention.ts'
import { accessToolHandlers, auditHandlers, policyHandlers, principalHandlers } from './routes.ts'
import { type AccessOf, RowAccessRules } from './row-access.ts'
import { scopeToWorkspace } from './scope-to-workspace.ts'
import type { AuthContext } from './subject.ts'
import { AccessHistory } from './versions/access-history.ts'
import { VersionRetention } from './versions/version-retention.ts'

export interface AccessDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Log
  readonly config: Config
  /** ID of this process, recorded for actions of the runtime itself. */
  readonly replicaId: string
}

/** Creates access control and the audit trail, with the handlers of their routes by topic. */
export function openAccess(deps: AccessDependencies) {
  const audit = new AuditTrail(deps)
  const recorder = new DecisionRecorder(deps)
  const { rows } = deps
  const settings = deps.config.runtime.audit
  const retentions = [
    openAuditRetention({ ...deps, trail: audit, ...settings }),
    openDecisionRetention({ ...deps, recorder, ...settings }),
    new VersionRetention({ ...deps, ...settings }),
  ]
  const decisions = new DecisionRecords({ ...deps, recorder })
  const { auth } = deps.config
  const mapsRoles = usesOidc(auth) && auth.oidc?.roleMapping != null
  const principals = new Principals({ ...deps, mapsRoles })
  const rules = new RowAccessRules(rows, principals, recorder)
  return {
    audit,
    /** Returns a caller with the rights that it has in one workspace. */
    inWorkspace: (auth: AuthContext, workspaceId: string) =>
      scopeToWorkspace(auth, workspaceId, (...ids) => principals.roleOf(...ids)),
    /** Returns what an actor may see in a workspace now. */
    rowAccess: (...args: Parameters<AccessOf>) => rules.of(...args),
    learnableRows: (key: CollectionKey) => rules.learnableRows(key),
    /** Returns the number of policy decisions that this process could not store. */
    countLostDecisions: () => recorder.lost,
    /**
     * Deletes the policy audit of a workspace in small transactions, because it can be large. If that fails, for example
     * because a record is damaged, the last transaction of the deletion deletes it at once.
     */
    async purgeDecisions(workspaceId: string): Promise<void> {
      await recorder.flushed()
      const ofWorkspace = { index: 'byWorkspace', prefix: [workspaceId] }
      await deleteFirst(rows, tables.policyAudit, ofWorkspace).catch(error =>
        deps.log.warn({ workspaceId, error }, 'the policy audit could not be deleted in small transactions'),
      )
    },
    /** Deletes old records of both audits, and old access versions, now, and then regularly. */
    start() {
      for (const retention of retentions) retention.start()
    },
    async close() {
      for (const retention of retentions) await retention.close()
      await recorder.close()
      await audit.close()
    },
    handlers: {
      audit: auditHandlers(new AuditRecords({ ...deps, trail: audit }), decisions),
      principals: principalHandlers(principals),
      policy: policyHandlers(rows, principals, decisions),
      accessTools: accessToolHandlers(new AccessTools({ ...deps, history: new AccessHistory(deps) })),
    },
  }
}
