import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { Sent } from '../wire/harness.ts'
import { unknownId } from '../wire/shapes.ts'
import { jsonType, useBadInputRuntime } from './bad-input-runtime.ts'
import {
  batchRoute,
  bodySpecs,
  mcpRoute,
  ownerRoutes,
  routesWithoutBody,
  signInRoutes,
  uploadRoutes,
  vectors,
} from './routes.ts'
import { withPathIds } from './test-data.ts'

const runtime = useBadInputRuntime()
const routesWithBody = Object.keys(bodySpecs)

test('the table covers every route with a body', () => {
  const described = runtime.data.routes
    .filter(route => /^(POST|PATCH|PUT) /.test(route))
    .filter(route => ![...ownerRoutes, ...signInRoutes].includes(route))
  expect([...routesWithBody, ...routesWithoutBody, batchRoute, ...uploadRoutes, mcpRoute].sort()).toEqual(
    described.sort(),
  )
})

describe.each(routesWithBody)('S7.3-validation_error S7.3-13: %s', route => {
  const { valid, required, strict, fields } = bodySpecs[route]!
  const line = () => withPathIds(route, runtime.data.own)

  test('rejects a field of a wrong type or value by name', async () => {
    await runtime.expectAllRejected(async findings => {
      for (const [field, { wrong, codes }] of Object.entries(fields))
        for (const value of wrong)
          await runtime.sendInvalid(findings, line(), { ...valid, [field]: value }, { field, codes })
    })
  })

  test('rejects a missing field by name, and an unknown one if the body is strict', async () => {
    await runtime.expectAllRejected(async findings => {
      for (const field of required) {
        const { [field]: _, ...rest } = valid
        // The search rule applies to the whole body, so its issue has no path.
        const named = route.endsWith('/search') ? 'text' : field
        await runtime.sendInvalid(findings, line(), rest, { field: named, codes: ['validation_error'] })
      }
      if (strict)
        for (const field of ['colour', 'kind', 'workspaceId', 'constructor', 'toString'])
          await runtime.sendInvalid(
            findings,
            line(),
            { ...valid, [field]: 'x' },
            { field, codes: ['validation_error'] },
          )
    })
  })

  test('rejects a body that is not a JSON object or not JSON, and a wrong content type', async () => {
    const invalidUtf8 = Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d])
    const whole = JSON.stringify(valid)
    const bodies: [what: string, sent: Sent][] = [
      ['null', { raw: 'null', headers: jsonType }],
      ['an array', { raw: '[]', headers: jsonType }],
      ['text', { raw: '"x"', headers: jsonType }],
      ['a number', { raw: '5', headers: jsonType }],
      ['true', { raw: 'true', headers: jsonType }],
      ['nothing', { raw: '', headers: jsonType }],
      ['blanks', { raw: '  \n', headers: jsonType }],
      ['half', { raw: whole.slice(0, -1), headers: jsonType }],
      ['more', { raw: `${whole} x`, headers: jsonType }],
      ['NaN', { raw: '{"a":NaN}', headers: jsonType }],
      ['a comment', { raw: `/* */ ${whole}`, headers: jsonType }],
      ['invalid UTF-8', { raw: invalidUtf8, headers: jsonType }],
      ['no type', { raw: whole }],
      ['text/plain', { raw: whole, headers: { 'content-type': 'text/plain' } }],
      ['a form', { raw: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
      ['another JSON', { raw: whole, headers: { 'content-type': 'application/jsonp' } }],
      ['compressed', { raw: whole, headers: { ...jsonType, 'content-encoding': 'gzip' } }],
      ['arrays, 2,000 deep', { raw: '['.repeat(2_000) + ']'.repeat(2_000), headers: jsonType }],
      ['objects, 2,000 deep', { raw: `${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}`, headers: jsonType }],
      ['unclosed, 2,000 deep', { raw: '['.repeat(2_000), headers: jsonType }],
    ]
    await runtime.expectAllRejected(async findings => {
      for (const [what, sent] of bodies) {
        if (required.length === 0 && sent.raw === '') continue
        const reply = await runtime.wire.send(line(), sent)
        findings.add(`${route} ${what}`, reply, runtime.problemOf(reply, 'validation_error'))
      }
    })
  })

  test('S8-02 S7.3-payload_too_large: rejects an oversized body', async () => {
    const hasImages = /\/messages(?:\/stream)?$/.test(route)
    const size = /\/ingest(?:\/import)?$/.test(route) ? 51_000_000 : hasImages ? 29_000_000 : 11_000_000
    const raw = Buffer.alloc(size, ' ')
    raw.write(JSON.stringify(valid))
    const chunked = Readable.from([raw.subarray(0, 6_000_000), raw.subarray(6_000_000)])
    await runtime.expectAllRejected(async findings => {
      // Bodies without a declared length are read alike on all routes. `test/wire/limits.test.ts` covers other limits.
      for (const body of hasImages ? [raw, chunked] : [raw]) {
        const reply = await runtime.wire.send(line(), { raw: body, headers: jsonType })
        findings.add(`${route} ${size} bytes`, reply, runtime.problemOf(reply, 'payload_too_large'))
      }
    })
  })

  test('treats __proto__ and constructor as ordinary unknown names', async () => {
    await runtime.expectAllRejected(async findings => {
      for (const field of required)
        for (const name of ['__proto__', 'constructor', 'prototype']) {
          const raw = `{"${name}":${JSON.stringify({ [field]: valid[field] })}}`
          const reply = await runtime.wire.send(line(), { raw, headers: jsonType })
          findings.add(`${route} ${raw}`, reply, runtime.problemOf(reply))
        }
    })
    await runtime.wire.exchange('GET /healthz', undefined, 200, { status: 'ok' })
  })
})

test('S7.3-dimension_mismatch S8-05: rejects vectors of a wrong length, or with values that are not finite', async () => {
  const kb = withPathIds(
    '/api/v1/workspaces/{workspaceId}/knowledge-bases/{knowledgeBaseId}',
    runtime.data.own,
  )
  await runtime.expectAllRejected(async findings => {
    for (const value of vectors.wrong) {
      const isOfAnotherLength = Array.isArray(value) && (value.length === 2 || value.length === 4)
      const codes = isOfAnotherLength ? ['dimension_mismatch'] : ['validation_error']
      const field = 'vector'
      await runtime.sendInvalid(findings, `POST ${kb}/search`, { vector: value }, { field, codes })
      const records = [
        { id: 'before', vector: [0, 1, 0] },
        { id: 'spoilt', vector: value },
      ]
      await runtime.sendInvalid(findings, `POST ${kb}/records`, { records }, { field, codes })
    }
    for (const raw of ['{"vector":[NaN,0,0]}', '{"vector":[Infinity,0,0]}', '{"vector":[-Infinity,0,0]}']) {
      const reply = await runtime.wire.send(`POST ${kb}/search`, { raw, headers: jsonType })
      findings.add(raw, reply, runtime.problemOf(reply))
    }
  })
})

test('S7.3-conflict: rejects existing IDs', async () => {
  const ids = runtime.data.own
  const at = (path: string) => `POST ${withPathIds(path, ids)}`
  const W = '/api/v1/workspaces/{workspaceId}'
  const KB = `${W}/knowledge-bases/{knowledgeBaseId}`
  const attempts: [line: string, body: object][] = [
    ['POST /api/v1/workspaces', { name: 'doubled', workspaceId: ids.workspaceId }],
    [at(`${W}/knowledge-bases`), { name: 'doubled', knowledgeBaseId: ids.knowledgeBaseId }],
    [at(`${W}/chunking-services`), { name: 'd', engine: 'x', chunkingServiceId: ids.chunkingServiceId }],
    [
      at(`${W}/embedding-services`),
      {
        name: 'doubled',
        provider: 'mock',
        modelName: 'm',
        embeddingDimension: 3,
        embeddingServiceId: ids.embeddingServiceId,
      },
    ],
    [at(`${W}/agents`), { name: 'doubled', agentId: ids.agentId }],
    [at(`${W}/agents/{agentId}/conversations`), { conversationId: ids.conversationId }],
    [at(`${KB}/documents`), { documentId: ids.documentId }],
    [at(`${KB}/ingest`), { text: 'doubled', documentId: ids.documentId }],
  ]
  await runtime.expectAllRejected(async findings => {
    for (const [line, body] of attempts)
      await runtime.sendInvalid(findings, line, body, { codes: ['conflict'] })
  })
})

test('an upsert with a duplicate ID is rejected, or the last record counts', async () => {
  const kb = withPathIds(
    '/api/v1/workspaces/{workspaceId}/knowledge-bases/{knowledgeBaseId}',
    runtime.data.foreign,
  )
  const records = [
    { id: 'twice', vector: [0, 1, 0], payload: { at: 1 } },
    { id: 'twice', vector: [0, 0, 1], payload: { at: 2 } },
  ]
  const reply = await runtime.wire.send(`POST ${kb}/records`, { json: { records } })
  const found = await runtime.wire.send(`POST ${kb}/search`, {
    json: { vector: [0, 0, 1], topK: 1000, filter: { at: { $in: [1, 2] } } },
  })
  if (reply.status === 200) expect(found.body).toMatchObject([{ id: 'twice', payload: { at: 2 } }])
  else {
    expect(runtime.problemOf(reply)).toBeUndefined()
    expect(found.body).toEqual([])
  }
  await runtime.wire.send(`DELETE ${kb}/records/twice`)
})

test('__proto__ in metadata, payload, filter and lexical options does not pollute prototypes', async () => {
  const kb = withPathIds(
    '/api/v1/workspaces/{workspaceId}/knowledge-bases/{knowledgeBaseId}',
    runtime.data.foreign,
  )
  const bodies: [line: string, raw: string][] = [
    [`POST ${kb}/documents`, '{"metadata":{"__proto__":"x","constructor":"y"}}'],
    [`POST ${kb}/documents`, '{"metadata":{"__proto__":{"polluted":"yes"}}}'],
    [`POST ${kb}/ingest`, '{"text":"proto","metadata":{"__proto__":"x","toString":"y"}}'],
    [
      `POST ${kb}/records`,
      '{"records":[{"id":"p","vector":[0,1,0],"payload":{"__proto__":{"polluted":true}}}]}',
    ],
    [
      `POST ${kb}/records`,
      '{"records":[{"id":"__proto__","vector":[0,1,0]},{"id":"constructor","vector":[0,1,0]}]}',
    ],
    [`POST ${kb}/search`, '{"vector":[1,0,0],"filter":{"__proto__":"x"}}'],
    [`POST ${kb}/search`, '{"vector":[1,0,0],"filter":{"__proto__":{"$eq":"x"},"constructor":{"$ne":"y"}}}'],
    [`PATCH ${kb}`, '{"lexical":{"enabled":true,"analyzer":null,"options":{"__proto__":"x"}}}'],
  ]
  for (const [line, raw] of bodies) {
    const reply = await runtime.wire.send(line, { raw, headers: jsonType })
    expect(reply.status, `${line} ${raw} → ${reply.text}`).toBeLessThan(500)
    expect(reply.text).not.toContain('polluted')
  }
  const fresh = await runtime.wire.send(`POST ${kb}/documents`, { json: {} })
  runtime.acceptChanges()
  expect(fresh.text).not.toContain('polluted')
  expect(fresh.body).toMatchObject({ metadata: {} })
})

test('rejects a role with scopes that it does not have', async () => {
  const line = withPathIds('POST /api/v1/workspaces/{workspaceId}/api-keys', runtime.data.own)
  await runtime.expectAllRejected(async findings => {
    for (const [role, scopes] of [
      ['viewer', ['read', 'write']],
      ['viewer', ['read:content']],
      ['editor', ['write']],
      ['admin', ['manage']],
    ])
      await runtime.sendInvalid(
        findings,
        line,
        { label: 'spoilt', role, scopes },
        { field: 'scopes', codes: ['validation_error'] },
      )
  })
})

test('ignores the body of a route that reads none', async () => {
  await runtime.expectAllRejected(async findings => {
    // A restart, a compaction and a restore have an effect. Other tests cover them.
    const hasEffect = (line: string) => line === 'POST /setup/restart' || /\/(compact|restore)$/.test(line)
    for (const line of routesWithoutBody.filter(one => !hasEffect(one)))
      for (const raw of ['{"a":1}', 'no JSON', '['.repeat(50_000), Buffer.alloc(11_000_000)]) {
        const sent = { raw, headers: jsonType }
        const reply = await runtime.wire.send(
          withPathIds(line, { jobId: unknownId, ...runtime.data.own }),
          sent,
        )
        const isTooLarge = raw.length > 10_000_000
        const absent = ['job_not_found', 'chat_message_not_found']
        const codes = ['not_configured', ...(isTooLarge ? ['payload_too_large'] : absent)]
        const isUnread = !isTooLarge && reply.status === 200
        findings.add(`${line} ${raw.length} bytes`, reply, !isUnread && runtime.problemOf(reply, ...codes))
      }
  })
})
