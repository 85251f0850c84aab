import { z } from 'zod'
import { open } from './access.ts'
import { timestamp } from './fields.ts'
import { route } from './route.ts'

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
        ingest: z.object({ active: z.int(), capacity: z.int(), queued: z.int() }).optional(),
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
