import { z } from 'zod'
import { openToAll, operator } from './access.ts'
import { isoTimestamp } from './fields.ts'
import { route } from './route.ts'

const IngestLoad = z.object({ active: z.int(), capacity: z.int(), queued: z.int() })
export type IngestLoad = z.output<typeof IngestLoad>

/** Routes that are open to everyone: health, version, features and the API reference. */
export const runtimeRoutes = {
  root: route({
    method: 'GET',
    path: '/',
    summary: 'Show the name and version of the runtime',
    access: openToAll,
    replies: {
      200: z.object({ name: z.string(), version: z.string(), commit: z.string(), docs: z.string() }),
    },
    errors: [],
  }),
  health: route({
    method: 'GET',
    path: '/healthz',
    summary: 'Check that the server is running',
    access: openToAll,
    replies: { 200: z.object({ status: z.literal('ok') }) },
    errors: [],
  }),
  ready: route({
    method: 'GET',
    path: '/readyz',
    summary: 'Check that the server can handle requests',
    access: openToAll,
    replies: {
      200: z.object({
        status: z.literal('ready'),
        workspaces: z.int(),
        ingest: IngestLoad.optional(),
      }),
    },
    errors: ['draining', 'control_plane_unavailable'],
  }),
  version: route({
    method: 'GET',
    path: '/version',
    summary: 'Show the version and build of the runtime',
    access: openToAll,
    replies: {
      200: z.object({ version: z.string(), commit: z.string(), buildTime: isoTimestamp, node: z.string() }),
    },
    errors: [],
  }),
  features: route({
    method: 'GET',
    path: '/features',
    summary: 'List optional features',
    access: openToAll,
    replies: {
      200: z.object({
        mcp: z.object({ enabled: z.boolean(), baseUrl: z.string().nullable() }),
        ingestBatch: z.boolean(),
      }),
    },
    errors: [],
  }),
  errorCodes: route({
    method: 'GET',
    path: '/error-codes',
    summary: 'List error codes',
    access: openToAll,
    replies: {
      200: z.object({
        codes: z.array(
          z.object({ code: z.string(), defaultStatus: z.int(), hint: z.string(), docs: z.string() }),
        ),
      }),
    },
    errors: [],
  }),
  docs: route({
    method: 'GET',
    path: '/docs',
    summary: 'Show this API reference as an HTML page',
    access: openToAll,
    replies: { 200: 'text/html' },
    errors: [],
  }),
  openapi: route({
    method: 'GET',
    path: '/api/v1/openapi.json',
    summary: 'Get this API reference as an OpenAPI 3.1 document',
    access: openToAll,
    replies: { 200: 'application/json' },
    errors: [],
  }),
}

const Probe = z
  .object({
    status: z.enum(['ok', 'degraded', 'down']),
    detail: z.string(),
    durationMs: z.int(),
  })
  .meta({ id: 'Probe' })
export type Probe = z.output<typeof Probe>

const RecentError = z.object({
  ts: isoTimestamp,
  code: z.string(),
  status: z.int(),
  method: z.string(),
  routePattern: z.string(),
  requestId: z.string(),
})
export type RecentError = z.output<typeof RecentError>

/** Reasons why the Astra CLI is not used. */
const reason = z.enum([
  'already-configured',
  'disabled',
  'binary-not-found',
  'no-profiles',
  'no-databases',
  'ambiguous-profile-non-interactive',
  'ambiguous-database-non-interactive',
  'user-aborted',
  'cli-error',
])

/**
 * Routes that operators use to monitor the runtime.
 *
 * @see docs/operating.md#monitor-a-server, docs/security.md#rule-17
 */
export const monitoringRoutes = {
  metrics: route({
    method: 'GET',
    path: '/metrics',
    summary: 'Get metrics in the Prometheus text format',
    access: operator,
    replies: { 200: 'text/plain' },
    errors: [],
  }),
  healthDetails: route({
    method: 'GET',
    path: '/health/details',
    summary: 'Show the health of each part of the runtime',
    description:
      'Checks the store and the chat provider, for at most 3 seconds each. Returns 200 even if a check fails.',
    access: operator,
    replies: {
      200: z.object({
        controlPlane: Probe,
        chat: Probe,
        ingest: IngestLoad.nullable(),
        recentErrors: z.object({ capacity: z.int(), count: z.int() }),
      }),
    },
    errors: [],
  }),
  recentErrors: route({
    method: 'GET',
    path: '/health/recent-errors',
    summary: 'List recent errors of the server process',
    description: 'Returns the last 100 errors, newest first. Validation errors and rate limits are omitted.',
    access: operator,
    replies: { 200: z.object({ capacity: z.int(), entries: z.array(RecentError) }) },
    errors: [],
  }),
  vendorCli: route({
    method: 'GET',
    path: '/astra-cli',
    summary: 'Detect the Astra CLI (not supported)',
    access: openToAll,
    replies: { 200: z.object({ detected: z.literal(false), reason }) },
    errors: [],
  }),
  vendorProfiles: route({
    method: 'GET',
    path: '/astra-cli/profiles',
    summary: 'List profiles of the Astra CLI (not supported)',
    access: openToAll,
    replies: { 200: z.object({ available: z.literal(false), reason }) },
    errors: [],
  }),
}
