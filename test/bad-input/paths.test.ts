import { describe, expect, test } from 'vitest'
import { file, form } from '../wire/forms.ts'
import type { Sent } from '../wire/harness.ts'
import { unknownId } from '../wire/shapes.ts'
import { codeOf, messageOf, useBadInputRuntime } from './bad-input-runtime.ts'
import { batchRoute, bodySpecs, codeOfUnknown, mcpRoute, ownerRoutes, uploadRoutes } from './routes.ts'
import { paramsOf, withPathIds } from './test-data.ts'

const runtime = useBadInputRuntime()

describe('ids in paths', () => {
  const bad = [
    'nope',
    '11111111-2222-3333-4444-555555555555',
    '__proto__',
    'constructor',
    'x'.repeat(5_000),
    '..%2f..%2fetc%2fpasswd',
    '%00',
    `${unknownId}%00`,
    '%C3%28',
    '%ED%A0%80',
    '%ZZ',
    '%',
    'null',
    '%20',
    `%7B${unknownId}%7D`,
  ]

  test('rejects an invalid ID in every parameter of every route with 400 and its name, and an unknown or foreign one with 404', async () => {
    await runtime.expectAllRejected(async findings => {
      for (const route of runtime.data.routes.filter(one => !ownerRoutes.includes(one)))
        for (const name of paramsOf(route).filter(param => param !== 'recordId')) {
          for (const value of bad.filter(value => !isIdOf(name, value))) {
            const reply = await runtime.wire.send(
              withPathIds(route, runtime.data.own, { [name]: value }),
              bodyFor(route),
            )
            const misread = reply.status === 404 && codeOf(reply) === 'not_found' && value.includes('%')
            const other = !misread && codeOf(reply) !== 'validation_error' && 'expected validation_error'
            const unnamed =
              !misread && !messageOf(reply).includes(name) && !isUndecodable(value) && `does not name ${name}`
            findings.add(
              `${route} ${name}=${value.slice(0, 60)}`,
              reply,
              runtime.problemOf(reply) ?? (other || unnamed),
            )
          }
          // A resource is described without a lookup, and an index is not an ID.
          if (name === 'resourceId' || name === 'imageIndex') continue
          const foreign = name === 'workspaceId' ? [unknownId] : [unknownId, runtime.data.foreign[name]!]
          for (const value of foreign) {
            const reply = await runtime.wire.send(
              withPathIds(route, runtime.data.own, { [name]: value }),
              bodyFor(route),
            )
            findings.add(
              `${route} ${name}=${value}`,
              reply,
              runtime.problemOf(reply, codeOfUnknown(route, name)),
            )
          }
        }
    })
  })

  test('accepts any well-formed text as a record ID', async () => {
    const route =
      'DELETE /api/v1/workspaces/{workspaceId}/knowledge-bases/{knowledgeBaseId}/records/{recordId}'
    await runtime.expectAllRejected(async findings => {
      for (const recordId of ['%00', 'a%00b', '%C3%28', '%ED%A0%80', '%ZZ', '%']) {
        const reply = await runtime.wire.send(withPathIds(route, runtime.data.own, { recordId }))
        findings.add(`${route} ${recordId}`, reply, runtime.problemOf(reply))
      }
      for (const recordId of ['x'.repeat(5_000), '__proto__', '..%2f..', '%2520', "'%20OR%201=1%20--"])
        await runtime.wire.exchange(withPathIds(route, runtime.data.own, { recordId }), undefined, 200, {
          deleted: false,
        })
    })
  })

  /** Returns a valid body, so that only the path is invalid. */
  function bodyFor(route: string): Sent {
    if (uploadRoutes.includes(route)) return form(file('x'))
    if (route === batchRoute)
      return { raw: '{"text":"x"}\n', headers: { 'content-type': 'application/x-ndjson' } }
    const body = route === mcpRoute ? { jsonrpc: '2.0', id: 1, method: 'ping' } : bodySpecs[route]?.valid
    return body ? { json: body } : {}
  }

  /** Returns true if a principal can have this ID, which workspaces choose. */
  function isIdOf(name: string, value: string): boolean {
    return name === 'principalId' && /^[\w.@:+-]{1,128}$/.test(value)
  }

  function isUndecodable(value: string): boolean {
    try {
      decodeURIComponent(value)
      return false
    } catch {
      return true
    }
  }
})

test('rejects invalid limits and cursors of every list', async () => {
  const limits = [
    '0',
    '-1',
    '1001',
    '1e9',
    '99999999999999999999',
    'abc',
    '',
    '1.5',
    'NaN',
    'Infinity',
    'true',
    '%00',
    '%ZZ',
    '%C3%28',
    '[1]',
  ]
  const offset = Buffer.from('{"offset":0}').toString('base64url')
  const cursors = [
    '',
    'x',
    '%00',
    '%ZZ',
    '%ED%A0%80',
    offset,
    'A'.repeat(513),
    'A'.repeat(20_000),
    '__proto__',
    '..%2f',
  ]
  const codes = ['validation_error', 'invalid_cursor']
  await runtime.expectAllRejected(async findings => {
    for (const route of runtime.data.routes.filter(isList)) {
      const path = withPathIds(route, runtime.data.own)
      for (const query of [
        ...limits.map(value => `limit=${value}`),
        ...cursors.map(value => `cursor=${value}`),
      ]) {
        const reply = await runtime.wire.send(`${path}?${query}`)
        findings.add(`${route}?${query.slice(0, 60)}`, reply, runtime.problemOf(reply, ...codes))
      }
    }
  })
  for (const route of runtime.data.routes.filter(isList)) {
    const doubled = await runtime.wire.send(
      `${withPathIds(route, runtime.data.own)}?limit=1&limit=2&__proto__=x&constructor=y`,
    )
    expect(doubled.status, route).toBeLessThan(500)
  }

  function isList(route: string): boolean {
    return /^GET .*(\/workspaces|-services|\/knowledge-bases|\/documents|\/chunks|\/api-keys|\/principals|(?<!policy)\/audit)$/.test(
      route,
    )
  }
})

test('rejects invalid times and actions of the audit log', async () => {
  const moments = ['', 'today', '0', '2026-02-30T00:00:00.000Z', '2026-01-01T00:00:00+02:00', '%00', '%ZZ']
  const actions = ['', 'nope', 'api_key', 'API_KEY.CREATE', 'api_key.create,kb.create', '__proto__', '%00']
  await runtime.expectAllRejected(async findings => {
    for (const route of runtime.data.routes.filter(line => /^GET .*(?<!policy)\/audit$/.test(line)))
      for (const [name, value] of [
        ...moments.map(moment => ['since', moment]),
        ...actions.map(action => ['action', action]),
      ]) {
        const reply = await runtime.wire.send(`${withPathIds(route, runtime.data.own)}?${name}=${value}`)
        const about = `${route}?${name}=${value}`
        const unnamed = !messageOf(reply).includes(name!) && `does not name ${name}`
        findings.add(about, reply, runtime.problemOf(reply, 'validation_error') ?? unnamed)
      }
  })
})
