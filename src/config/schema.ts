import { z } from 'zod'
import { secretRef } from '../contract/fields.ts'
import { limits } from '../contract/limits.ts'
import { roles, scopes } from '../contract/scopes.ts'
import { workspaceKinds } from '../contract/workspaces.ts'
import {
  allowedEndpoint,
  block,
  configFlag,
  cookieName,
  headerName,
  hostName,
  integer,
  ipNetwork,
  issuerUrl,
  localPath,
  nonEmptyString,
  oauthScope,
  publicOrigin,
  redirectUri,
  runtimeSecretRef,
  safeUrl,
  variableName,
  webUrl,
} from './values.ts'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error'] as const
const role = z.enum(roles)

const release = z
  .strictObject({
    ref: secretRef.optional(),
    prefix: z
      .string()
      .regex(
        /^(?:env:[A-Za-z_]|file:\/|astra-cli:[^:])/,
        'must be the beginning of a secret reference: env:NAME or file:/path',
      )
      .optional(),
    hosts: z.array(nonEmptyString).min(1).optional(),
    workspaces: z.array(z.uuid()).min(1).optional(),
  })
  .refine(
    entry => (entry.ref === undefined) !== (entry.prefix === undefined),
    'must have either ref or prefix',
  )

/** A release of one secret reference, or of all references with a prefix, to hosts and workspaces. */
export type Release = z.output<typeof release>

const runtime = block({
  environment: z.enum(['development', 'production']).default('development'),
  host: hostName.default('127.0.0.1'),
  port: integer(1, 65_535).default(8787),
  logLevel: z.enum(logLevels).default('info'),
  requestIdHeader: headerName.default('X-Request-Id'),
  uiDir: z.string().nullable().default(null),
  replicaId: nonEmptyString.nullable().default(null),
  publicOrigin: webUrl.nullable().default(null),
  allowedHosts: z.array(hostName).default([]),
  allowedOrigins: z.array(publicOrigin).default([]),
  allowedEndpoints: z.array(allowedEndpoint).default([]),
  trustProxyHeaders: z
    .union(
      [configFlag, z.array(ipNetwork).min(1)],
      'must be true, false, or a list of IP addresses and CIDRs',
    )
    .default(false),
  csrfOriginCheck: configFlag.default(true),
  rateLimit: block({
    enabled: configFlag.default(true),
    capacity: integer(1, 1_000_000).nullable().default(null),
    authCapacity: integer(1, 1_000_000).default(120),
    windowMs: integer(1_000, 3_600_000).default(60_000),
  }),
  bodyMemory: block({
    totalBytes: integer(limits.ingestBodyBytes, 1_000_000_000_000).default(256_000_000),
    perCallerBytes: integer(limits.ingestBodyBytes, 1_000_000_000_000).default(64_000_000),
  }),
  ingestQueue: block({
    totalBytes: integer(1_000_000, 1_000_000_000_000).default(1_000_000_000),
    perWorkspaceBytes: integer(1_000_000, 1_000_000_000_000).default(256_000_000),
    inProgressBytes: integer(1_000_000, 1_000_000_000_000).default(64_000_000),
  }),
  streamsPerCaller: integer(1, 100_000).default(1_024),
  semanticSearch: configFlag.default(true),
  uploadsPerCaller: integer(1, 10_000).default(32),
  audit: block({
    retentionDays: integer(1, 3_650).default(90),
    decisionRetentionDays: integer(1, 3_650).default(30),
    decisionsMax: integer(1_000, 100_000_000).default(1_000_000),
  }),
  queryLog: block({
    retentionDays: integer(1, 3_650).default(30),
    searchesMax: integer(1_000, 10_000_000).default(100_000),
  }),
  trash: block({
    retentionHours: integer(0, 8_760).default(24),
    documentsMax: integer(1_000, 10_000_000).default(100_000),
  }),
  blockPrivateNetworkEndpoints: configFlag.default(false),
  maxConcurrentIngestJobs: integer(1, 1_000).default(4),
  jobs: block({ retentionDays: integer(1, 3_650).default(7) }),
  secretRefs: block({ allow: z.array(release).default([]) }),
  tracing: block({
    enabled: configFlag.default(false),
    serviceName: nonEmptyString.nullable().default(null),
    exporterUrl: webUrl.nullable().default(null),
  }),
  telemetry: block({ enabled: configFlag.default(false), url: webUrl.nullable().default(null) }),
})

const pollIntervalMs = integer(50, 60_000).optional()
const resume = {
  jobsResume: block({
    enabled: configFlag.default(false),
    graceMs: integer(1_000, 600_000).default(60_000),
    intervalMs: integer(1_000, 600_000).default(60_000),
  }),
}

const controlPlane = z.preprocess(
  value => value ?? { driver: 'sqlite' },
  z.discriminatedUnion(
    'driver',
    [
      z.strictObject({
        driver: z.literal('sqlite'),
        path: nonEmptyString.nullable().default(null),
        jobPollIntervalMs: pollIntervalMs,
        ...resume,
      }),
      z.strictObject({ driver: z.literal('file'), root: nonEmptyString, ...resume }),
      z.strictObject({ driver: z.literal('memory'), ...resume }),
      z.strictObject({
        driver: z.literal('postgres'),
        urlRef: secretRef,
        schema: nonEmptyString.default('workbase'),
        ...resume,
      }),
      z.strictObject({
        driver: z.literal('astra'),
        endpoint: webUrl,
        tokenRef: secretRef,
        keyspace: nonEmptyString.default('default_keyspace'),
        reconcileOrphansOnStart: configFlag.default(false),
        jobPollIntervalMs: pollIntervalMs,
        ...resume,
      }),
    ],
    'must be one of sqlite, file, memory, postgres, astra',
  ),
)

const oidc = z.strictObject({
  issuer: issuerUrl,
  audience: z.union(
    [nonEmptyString, z.array(nonEmptyString).min(1, 'must have at least one entry')],
    'must be a string, or a list of strings',
  ),
  jwksUri: safeUrl.nullable().default(null),
  clockToleranceSeconds: integer(0, 300).default(30),
  scopes: z.array(z.enum(scopes)).default([]),
  claims: block({
    subject: nonEmptyString.default('sub'),
    label: nonEmptyString.default('email'),
    workspaceScopes: nonEmptyString.default('wb_workspace_scopes'),
  }),
  roleMapping: z
    .strictObject({
      claim: nonEmptyString,
      values: z.record(z.string(), role),
      default: role.default('viewer'),
    })
    .nullable()
    .default(null),
  client: z
    .strictObject({
      clientId: nonEmptyString,
      clientSecretRef: runtimeSecretRef.nullable().default(null),
      redirectPath: redirectUri.default('/auth/callback'),
      postLogoutPath: localPath.default('/'),
      scopes: z
        .array(oauthScope)
        .min(1, 'must have at least one entry')
        .default(['openid', 'profile', 'email']),
      resource: nonEmptyString.nullable().default(null),
      sessionCookieName: cookieName.default('wb_session'),
      sessionSecretRef: z
        .union(
          [runtimeSecretRef, z.array(runtimeSecretRef).min(1, 'must have at least one entry')],
          'must be a secret reference, or a list of them',
        )
        .nullable()
        .default(null),
    })
    .nullable()
    .default(null),
})

const auth = block({
  mode: z.enum(['disabled', 'apiKey', 'oidc', 'any']).default('disabled'),
  anonymousPolicy: z.enum(['allow', 'reject']).default('allow'),
  bootstrapTokenRef: runtimeSecretRef.nullable().default(null),
  acknowledgeOpenAccess: configFlag.nullable().default(null),
  oidc: oidc.nullable().default(null),
})

const seedWorkspace = z.strictObject({
  uid: z.uuid().optional(),
  name: nonEmptyString,
  url: z.union([webUrl, secretRef], 'must be an http(s) URL or a secret reference').nullable().default(null),
  kind: z.enum(workspaceKinds),
  keyspace: nonEmptyString.nullable().default(null),
  credentials: z.record(z.string(), secretRef).default({}),
})

const timeoutMs = integer(100, 120_000).default(10_000)

const chat = block({
  enabled: configFlag.default(true),
  provider: z.enum(['openrouter', 'openai', 'ollama']).default('openrouter'),
  tokenRef: secretRef.nullable().default('env:OPENROUTER_API_KEY'),
  baseUrl: webUrl.nullable().default(null),
  model: nonEmptyString.default('openai/gpt-4o-mini'),
  maxOutputTokens: integer(1, 8_192).default(1_024),
  requestTimeoutMs: integer(1, limits.requestTimeoutMs).nullable().default(null),
  retrievalK: integer(1, 64).default(6),
  checkAnswers: configFlag.default(true),
  allowDataCollection: configFlag.default(false),
  systemPrompt: nonEmptyString.nullable().default(null),
  tools: block({
    fetch: block({
      enabled: configFlag.default(false),
      timeoutMs,
      maxResponseBytes: integer(1_024, 10_485_760).default(1_048_576),
    }),
    webSearch: block({
      enabled: configFlag.default(false),
      provider: z.literal('tavily').nullable().default(null),
      apiKeyRef: secretRef.nullable().default(null),
      timeoutMs,
      maxResults: integer(1, 20).default(5),
    }),
    mcp: block({ discoveryTtlMs: integer(0, 3_600_000).default(60_000) }),
  }),
})

const stdioServer = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be up to 64 lower-case letters, digits, - and _'),
  command: nonEmptyString,
  args: z.array(z.string()).default([]),
  env: z.record(variableName, z.string()).default({}),
  secretEnv: z.record(variableName, secretRef).default({}),
  enabled: configFlag.default(true),
  allowedTools: z.array(nonEmptyString).nullable().default(null),
  workspaces: z.array(z.uuid()).nullable().default(null),
})

/**
 * Schema of `workbase.yaml`, with the default of each key.
 *
 * @see docs/configuration.md
 */
export const configSchema = z.strictObject({
  version: z.literal(1, 'must be 1'),
  runtime,
  controlPlane,
  auth,
  seedWorkspaces: z.array(seedWorkspace).default([]),
  chat,
  mcp: block({
    enabled: configFlag.default(true),
    exposeChat: configFlag.default(false),
    stdioServers: z.array(stdioServer).default([]),
  }),
})

export type Config = z.output<typeof configSchema>

/** Keys that are accepted but have no effect. */
export const keysWithoutEffect = [
  'runtime.uiDir',
  'runtime.telemetry.enabled',
  'runtime.telemetry.url',
  'controlPlane.jobPollIntervalMs',
] as const
