import { z } from 'zod'
import { open, operator } from './access.ts'
import { timestamp } from './fields.ts'
import { route } from './route.ts'

const IngestLoad = z.object({ active: z.int(), capacity: z.int(), queued: z.int() })
export type IngestLoad = z.output<typeof IngestLoad>

export const operational = {
  root: route({
    method: 'GET',
    path: '/',
    summary: 'What runs here',
    access: open,
    replies: {
      200: z.object({ name: z.string(), version: z.string(), commit: z.string(), docs: z.string() }),
    },
    errors: [],
  }),
  health: route({
    method: 'GET',
    path: '/healthz',
    summary: 'Whether the process lives',
    access: open,
    replies: { 200: z.object({ status: z.literal('ok') }) },
    errors: [],
  }),
  ready: route({
    method: 'GET',
    path: '/readyz',
    summary: 'Whether requests are served',
    access: open,
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
    summary: 'Version and build of the runtime',
    access: open,
    replies: {
      200: z.object({ version: z.string(), commit: z.string(), buildTime: timestamp, node: z.string() }),
    },
    errors: [],
  }),
  features: route({
    method: 'GET',
    path: '/features',
    summary: 'What this runtime offers beyond the base contract',
    access: open,
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
    summary: 'Every registered error code',
    access: open,
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
    summary: 'This reference, as a page',
    access: open,
    replies: { 200: 'text/html' },
    errors: [],
  }),
  openapi: route({
    method: 'GET',
    path: '/api/v1/openapi.json',
    summary: 'This reference, as an OpenAPI 3.1 document',
    access: open,
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

/** What went wrong, as the operator sees it. */
const RecentError = z.object({
  ts: timestamp,
  code: z.string(),
  status: z.int(),
  method: z.string(),
  routePattern: z.string(),
  requestId: z.string(),
})
export type RecentError = z.output<typeof RecentError>

/** Why a vendor's command line is not used. */
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

/** How the runtime is doing. @see docs/operating.md#how-it-is-doing, docs/security.md#rule-17 */
export const operation = {
  metrics: route({
    method: 'GET',
    path: '/metrics',
    summary: 'Counts of this process, in the text format of Prometheus',
    access: operator,
    replies: { 200: 'text/plain' },
    errors: [],
  }),
  healthDetails: route({
    method: 'GET',
    path: '/health/details',
    summary: 'How the parts of the runtime are',
    description: 'Answers 200 though a part is down.',
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
    summary: 'The last errors of this process, newest first',
    description: 'Requests that did not fit their schema, and those over the rate limit, are left out.',
    access: operator,
    replies: { 200: z.object({ capacity: z.int(), entries: z.array(RecentError) }) },
    errors: [],
  }),
  vendorCli: route({
    method: 'GET',
    path: '/astra-cli',
    summary: 'Whether the command line of a database vendor was found; it is not looked for',
    access: open,
    replies: { 200: z.object({ detected: z.literal(false), reason }) },
    errors: [],
  }),
  vendorProfiles: route({
    method: 'GET',
    path: '/astra-cli/profiles',
    summary: 'Profiles of that command line',
    access: open,
    replies: { 200: z.object({ available: z.literal(false), reason }) },
    errors: [],
  }),
}
