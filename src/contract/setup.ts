import { z } from 'zod'
import { openToAll, setupOnly } from './access.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

/**
 * Variables that can be written to the managed file of a data directory.
 *
 * @see docs/operating.md#provider-keys
 */
export const managedKeys = [
  'ASTRA_DB_API_ENDPOINT',
  'ASTRA_DB_APPLICATION_TOKEN',
  'OPENROUTER_API_KEY',
  'OPENAI_API_KEY',
] as const

/** Single-line value. A line break in it could add other variables to the file. */
const managedValue = z
  .string()
  .max(limits.managedValueChars, `must be at most ${limits.managedValueChars} characters long`)
  .refine(
    text => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text),
    'must not contain line breaks or control characters',
  )

const managedFile = {
  path: z.string().nullable(),
  present: z.boolean(),
  writable: z.boolean(),
}

export const setup = {
  status: route({
    method: 'GET',
    path: '/setup-status',
    summary: 'Show the state of the setup',
    description:
      'Returns which parts of the runtime are set up, without secrets. `managedEnv.path` is null for callers who are not operators.',
    access: openToAll,
    replies: {
      200: z.object({
        setupComplete: z.boolean(),
        workspacesCount: z.int(),
        controlPlane: z.object({ kind: z.string(), healthy: z.boolean() }),
        hasChatProvider: z.boolean(),
        hasAstraCreds: z.boolean(),
        managedEnv: z.object({ ...managedFile, configuredKeys: z.array(z.enum(managedKeys)) }),
        bootError: z.object({ code: z.string(), message: z.string() }).optional(),
      }),
    },
    errors: [],
  }),
  writeEnv: route({
    method: 'POST',
    path: '/setup/env',
    summary: 'Set provider keys in the data directory',
    description:
      'Writes variables to a file in the data directory. Variables that you do not send, or send with an empty value, do not change. The values take effect after a restart.',
    access: setupOnly,
    body: {
      kind: 'json',
      schema: z.object({
        values: z.strictObject(Object.fromEntries(managedKeys.map(key => [key, managedValue.optional()]))),
      }),
      mode: 'lenient',
      limitBytes: limits.jsonBodyBytes,
    },
    replies: {
      200: z.object({
        ok: z.literal(true),
        managedEnv: z.object(managedFile),
        written: z.array(z.string()),
        restartRequired: z.literal(true),
      }),
    },
    errors: ['conflict'],
    audit: 'setup.env',
  }),
  restart: route({
    method: 'POST',
    path: '/setup/restart',
    summary: 'Restart the runtime with its current configuration',
    access: setupOnly,
    replies: { 202: z.object({ ok: z.literal(true), note: z.string() }) },
    errors: ['setup_restart_unavailable'],
    audit: 'setup.restart',
  }),
}

const degraded = z.object({ status: z.literal('degraded'), reason: z.string() })

/**
 * Routes that replace `runtimeRoutes.health` and `runtimeRoutes.ready` in rescue mode.
 */
export const rescue = {
  health: route({
    method: 'GET',
    path: '/healthz',
    summary: 'Show why the runtime cannot serve requests',
    access: openToAll,
    replies: { 503: degraded },
    errors: [],
  }),
  ready: route({
    method: 'GET',
    path: '/readyz',
    summary: 'Show why the runtime cannot serve requests',
    access: openToAll,
    replies: { 503: degraded },
    errors: [],
  }),
}
