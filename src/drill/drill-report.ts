/** Counts of the requests to one route. */
export interface RouteResult {
  /** Topic and operation: `documents.list`. */
  readonly name: string
  /** Method and path. */
  readonly route: string
  requests: number
  /** Number of canaries that the route has shown to principals who may see them. */
  shown: number
  /** Number of requests about hidden content that were refused, as they should be. */
  refused: number
  leaks: number
  wrongRefusals: number
}

/** An unexpected response: a leak, or visible content that is missing. */
export interface DrillFinding {
  /** `leak` if a principal got what it may not see or change, `wrongRefusal` if it did not get what it may see. */
  readonly kind: 'leak' | 'wrongRefusal'
  readonly route: string
  readonly principalId: string
  readonly description: string
}

/** The result of a drill. */
export interface DrillReport {
  readonly version: string
  readonly workspaceId: string
  readonly workspaceName: string
  readonly startedAt: string
  readonly finishedAt: string
  /** IDs of the principals that sent requests. */
  readonly principals: readonly string[]
  /** Number of principals of the workspace. */
  readonly principalsTotal: number
  /** Tested policies. `dsl` is null for the built-in policy. */
  readonly policies: readonly { readonly dsl: string | null; readonly knowledgeBases: readonly string[] }[]
  readonly canaries: number
  readonly routes: readonly RouteResult[]
  /** Routes below the workspace that were not tested, with the reason. */
  readonly omitted: readonly { readonly route: string; readonly reason: string }[]
  readonly findings: readonly DrillFinding[]
  readonly requests: number
  readonly leaks: number
  readonly wrongRefusals: number
}
