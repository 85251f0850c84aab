import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { exactly, isoMs, matching, oneOf, uuid } from './exactly.ts'
import { freshName } from './fixtures.ts'
import { past, type Reply, type Row, type Sent, useServer, Wire } from './harness.ts'
import { notUuid, unknownId, workspace } from './shapes.ts'

const bootstrapToken = 'operator-of-the-wire-tests-0123456789'
const folder = mkdtempSync(join(tmpdir(), 'wb-keys-'))
const config = join(folder, 'workbase.yaml')
writeFileSync(
  config,
  'version: 1\nauth:\n  mode: apiKey\n  anonymousPolicy: reject\n  bootstrapTokenRef: env:BOOT\n',
)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const wire = useServer({ env: { BOOT: bootstrapToken }, args: ['--config', config] })

/** Sends requests with a token. */
class Signed extends Wire {
  constructor(
    readonly token: string,
    private readonly to: Wire,
  ) {
    super()
  }

  override send(line: string, sent: Sent = {}): Promise<Reply> {
    const headers = { ...sent.headers, authorization: `Bearer ${this.token}` }
    return this.to.send(line, { ...sent, headers })
  }
}

const as = (token: string) => new Signed(token, wire)
const operator = as(bootstrapToken)

const token = matching(/^wb_live_[a-z0-9]{12}_[a-z0-9]{32}$/)
const prefix = matching(/^[a-z0-9]{12}$/)

function record(known: Row = {}): Row {
  return {
    workspaceId,
    keyId: uuid,
    prefix,
    label: 'ci',
    role: 'editor',
    scopes: ['read', 'write'],
    principalId: null,
    createdAt: isoMs,
    lastUsedAt: null,
    revokedAt: null,
    expiresAt: null,
    ...known,
  }
}

let workspaceId: string
let place: string
let keys: string

beforeAll(async () => {
  workspaceId = await operator.make('/api/v1/workspaces', { name: 'keys' }, 'workspaceId')
  place = `/api/v1/workspaces/${workspaceId}`
  keys = `${place}/api-keys`
})

interface Made {
  readonly token: string
  readonly keyId: string
  readonly key: Row
  readonly signed: Signed
}

async function mint(body: Row = {}, by: Wire = operator): Promise<Made> {
  const reply = await by.send(`POST ${keys}`, { json: { label: freshName('key'), ...body } })
  expect(reply.status, reply.text).toBe(201)
  const { plaintext, key } = reply.body as { plaintext: string; key: Row }
  return { token: plaintext, keyId: String(key.keyId), key, signed: as(plaintext) }
}

/** A request that any key of the workspace can make. */
const probe = () => `GET ${place}`

async function unauthorized(token: string, message: RegExp): Promise<void> {
  const { headers } = await as(token).refused(probe(), {}, 401, 'unauthorized', message)
  expect(headers['www-authenticate']).toBe('Bearer')
}

/** Returns a token with the same prefix and another secret. */
function wrongSecretOf(token: string): string {
  return `${token.slice(0, 21)}${[...token.slice(21)].reverse().join('')}`
}

const invalid = /^the token is not valid$/
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()

describe('creating keys', () => {
  test('S4.2-12 S4.2-13 S2.3-01 S2.3-05 S2.3-06 S8-15: POST returns the token and the record', async () => {
    const minted = { plaintext: token, key: record() }
    const { plaintext, key } = await operator.exchange(`POST ${keys}`, { label: 'ci' }, 201, minted)
    expect(String(plaintext).slice(8, 20)).toBe((key as Row).prefix)
    await as(String(plaintext)).exchange(probe(), undefined, 200, workspace({ name: 'keys' }))
  })

  test.each<[Row, Row]>([
    [{ role: 'viewer' }, { role: 'viewer', scopes: ['read'] }],
    [{ role: 'admin' }, { role: 'admin', scopes: ['read', 'write', 'manage'] }],
    [{ role: 'editor', scopes: ['write', 'read'] }, {}],
    [{ scopes: ['write:kb', 'write', 'write:kb'] }, { role: null, scopes: ['write', 'write:kb'] }],
    [{ scopes: ['tools:invoke', 'read:chat'] }, { role: null, scopes: ['read:chat', 'tools:invoke'] }],
    [{ scopes: ['manage', 'write', 'read'] }, { role: 'admin', scopes: ['read', 'write', 'manage'] }],
    [{ expiresAt: null, principalId: null }, {}],
    [{ expiresAt: '2999-12-31T23:59:59Z' }, { expiresAt: '2999-12-31T23:59:59.000Z' }],
    [{ principalId: 'ada@example.com' }, { principalId: 'ada@example.com' }],
    [{ label: 'x'.repeat(120) }, { label: 'x'.repeat(120) }],
  ])('S4.2-12: %j is stored as %j', async (body, known) => {
    const minted = { plaintext: token, key: record(known) }
    const { key } = await operator.exchange(`POST ${keys}`, { label: 'ci', ...body }, 201, minted)
    await operator.exchange(`GET ${keys}/${(key as Row).keyId}`, undefined, 200, key)
  })

  test.each<[unknown, RegExp]>([
    [{}, /^label: /],
    [{ label: '' }, /^label: /],
    [{ label: 'x'.repeat(121) }, /^label: /],
    [{ label: 5 }, /^label: /],
    [{ label: null }, /^label: /],
    [{ label: 'x', role: 'owner' }, /^role: /],
    [{ label: 'x', role: null }, /^role: /],
    [{ label: 'x', scopes: [] }, /^scopes: /],
    [{ label: 'x', scopes: 'read' }, /^scopes: /],
    [{ label: 'x', scopes: ['read', 'reads'] }, /^scopes\.1: /],
    [{ label: 'x', scopes: ['write:'] }, /^scopes\.0: /],
    [{ label: 'x', role: 'viewer', scopes: ['read', 'write'] }, /^scopes: /],
    [{ label: 'x', expiresAt: 'tomorrow' }, /^expiresAt: /],
    [{ label: 'x', expiresAt: 1_900_000_000 }, /^expiresAt: /],
    [{ label: 'x', expiresAt: '2001-01-01T00:00:00.000Z' }, /^expiresAt: /],
    [{ label: 'x', principalId: 'a b' }, /^principalId: /],
    [{ label: 'x', principalId: '' }, /^principalId: /],
    [[], /./],
    ['x', /./],
  ])('S4.2-12: rejects %j', async (json, message) => {
    const before = await operator.items(`${keys}?limit=200`)
    await operator.refused(`POST ${keys}`, { json }, 400, 'validation_error', message)
    expect(await operator.items(`${keys}?limit=200`)).toHaveLength(before.length)
  })

  test('S2.3-10: ignores unknown fields and names them in a header', async () => {
    const json = { label: 'ci', digest: 'scrypt$0$0', prefix: 'aaaaaaaaaaaa', keyId: unknownId }
    const { body, headers } = await operator.send(`POST ${keys}`, { json })
    exactly(body, { plaintext: token, key: record() })
    expect(headers['x-workbase-ignored']).toBe('digest, prefix, keyId')
    expect((body as { key: Row }).key).not.toMatchObject({ keyId: unknownId })
  })

  test('S4.2-14 S5.9-05 S2.3-08: the token is only in the response of its creation, and the digest is in no response', async () => {
    const { token: plain, keyId } = await mint({ role: 'admin' })
    await as(plain).send(probe())
    const later = [
      `GET ${keys}?limit=200`,
      `GET ${keys}/${keyId}`,
      `GET ${place}/audit?limit=200`,
      `POST ${keys}/${keyId}/rotate`,
      `DELETE ${keys}/${keyId}`,
      `GET ${keys}/${keyId}`,
    ]
    for (const line of later) {
      const { text } = await operator.send(line)
      expect(text, line).not.toContain(plain.slice(21))
      expect(text, line).not.toMatch(/scrypt|digest/)
    }
    await operator.refused(`GET ${keys}/${keyId}/plaintext`, {}, 404, 'not_found')
  })

  test('S2.3-03 S5.9-01: no file of the data directory contains the secret, and the store contains no full token', async () => {
    const { token: plain, signed } = await mint()
    await signed.send(probe())
    const { dataDir } = wire.serving
    const files = readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
      .map(name => join(dataDir, name))
      .filter(name => statSync(name).isFile())
    const holding = (text: string) => files.filter(name => readFileSync(name).includes(text))
    expect(holding(plain.slice(8, 20))).not.toEqual([])
    expect(holding(plain.slice(21))).toEqual([])
  })

  test('S7.3-workspace_not_found: lists no keys for an unknown workspace', async () => {
    const nowhere = `/api/v1/workspaces/${unknownId}/api-keys`
    await operator.refused(`GET ${nowhere}`, {}, 404, 'workspace_not_found')
    await operator.refused(`POST ${nowhere}`, { json: { label: 'x' } }, 404, 'workspace_not_found')
    for (const line of [
      `GET ${nowhere}/${unknownId}`,
      `DELETE ${nowhere}/${unknownId}`,
      `POST ${nowhere}/${unknownId}/rotate`,
    ])
      await operator.refused(line, {}, 404, 'workspace_not_found')
  })
})

describe('listing and showing keys', () => {
  test('S4.2-16 S3-02 S2.3-02: lists all keys in pages, oldest first, with prefixes and including revoked ones', async () => {
    const made = [await mint(), await mint(), await mint()]
    await operator.exchange(`DELETE ${keys}/${made[1]!.keyId}`, undefined, 204, undefined)
    const all: Row[] = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`
      const page = await operator.get(`${keys}?limit=2${query}`)
      exactly(Object.keys(page).sort(), ['items', 'nextCursor'])
      all.push(...(page.items as Row[]))
      cursor = page.nextCursor as string | null
    } while (cursor !== null)
    const order = all.map(({ createdAt, keyId }) => `${createdAt}${keyId}`)
    expect(order).toEqual([...order].sort())
    const mine = all.filter(({ keyId }) => made.some(one => one.keyId === keyId))
    exactly(
      mine,
      made.map(({ key }, at) => (at === 1 ? { ...key, revokedAt: isoMs } : key)),
    )
  })

  test('S7.3-api_key_not_found: an unknown key is 404, and an invalid ID is 400', async () => {
    for (const [method, end] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/rotate'],
    ]) {
      await operator.refused(`${method} ${keys}/${unknownId}${end}`, {}, 404, 'api_key_not_found')
      await operator.refused(`${method} ${keys}/${notUuid}${end}`, {}, 400, 'validation_error', /^keyId: /)
    }
  })

  test('S2.3-10: no route changes a key', async () => {
    const { keyId, key } = await mint()
    for (const method of ['PATCH', 'PUT', 'POST'])
      await operator.refused(`${method} ${keys}/${keyId}`, { json: { scopes: ['manage'] } }, 404, 'not_found')
    await operator.exchange(`GET ${keys}/${keyId}`, undefined, 200, key)
  })
})

describe('access with a key', () => {
  test('S2.3-11 S7.2-08 S7.3-forbidden: a key has access to its own workspace only', async () => {
    const other = await operator.make('/api/v1/workspaces', { name: 'other keys' }, 'workspaceId')
    const { signed } = await mint({ role: 'admin' })
    expect((await signed.items('/api/v1/workspaces')).map(one => one.workspaceId)).toEqual([workspaceId])
    for (const line of [`GET /api/v1/workspaces/${other}`, `GET /api/v1/workspaces/${other}/api-keys`])
      await signed.refused(line, {}, 403, 'forbidden')
    await signed.refused('POST /api/v1/workspaces', { json: { name: 'mine' } }, 403, 'forbidden')
  })

  test('S2.3-07: lastUsedAt is null until the first use, and then the time of the use', async () => {
    const { keyId, key, signed } = await mint()
    expect(key.lastUsedAt).toBeNull()
    await signed.send(probe())
    await expect.poll(async () => (await operator.get(`${keys}/${keyId}`)).lastUsedAt !== null).toBe(true)
    const { lastUsedAt } = await operator.get(`${keys}/${keyId}`)
    exactly(lastUsedAt, isoMs)
    expect(Date.parse(String(lastUsedAt))).toBeGreaterThanOrEqual(Date.parse(String(key.createdAt)))
  })

  test('S5.2-03 S5.2-05 S7.2-03: an unknown prefix and a wrong secret get identical responses', async () => {
    const { token: plain } = await mint()
    await unauthorized(wrongSecretOf(plain), invalid)
    await unauthorized(`wb_live_${'0'.repeat(12)}_${'0'.repeat(32)}`, invalid)
    await as(plain).exchange(probe(), undefined, 200, workspace({ name: 'keys' }))
  })

  test('S5.1-02 S5.2-09 S8-15 S7.2-02: malformed keys are not valid credentials', async () => {
    const { token: plain } = await mint()
    for (const one of [
      plain.slice(0, -1),
      `${plain}0`,
      plain.toUpperCase(),
      'x',
      'a.b.c',
      'x'.repeat(20_000),
    ])
      await unauthorized(one, /^the token does not match any configured authentication method$/)
    for (const authorization of [
      plain,
      `Basic ${plain}`,
      `Token ${plain}`,
      'Bearer',
      '',
      `Bearer ${plain}, x`,
    ]) {
      const sent = { headers: { authorization } }
      const { headers } = await wire.refused(probe(), sent, 401, 'unauthorized', /^the Authorization header/)
      expect(headers['www-authenticate']).toBe('Bearer')
    }
    await wire.refused(probe(), {}, 401, 'unauthorized', /without credentials/)
  })
})

describe('managing keys', () => {
  test('S4.2-15 S4.2-17 S4.2-18 S5.9-08 S9-05 S7.2-09: rejects callers without manage:keys', async () => {
    const { keyId, key } = await mint()
    const others = [
      await mint(),
      await mint({ role: 'viewer' }),
      await mint({ scopes: ['read', 'write', 'write:ingest', 'write:kb', 'write:services', 'write:agents'] }),
      await mint({ scopes: ['manage:access', 'manage:workspace', 'read:audit', 'tools:invoke'] }),
    ]
    for (const { signed } of others)
      for (const line of [
        `GET ${keys}`,
        `POST ${keys}`,
        `GET ${keys}/${keyId}`,
        `POST ${keys}/${keyId}/rotate`,
        `DELETE ${keys}/${keyId}`,
      ])
        await signed.refused(line, {}, 403, 'forbidden', /missing required scope 'manage:keys'/)
    await operator.exchange(`GET ${keys}/${keyId}`, undefined, 200, key)
  })

  test('S9-06 S9-07: accepts keys with manage, and keys with manage:keys', async () => {
    for (const body of [{ role: 'admin' }, { scopes: ['manage'] }, { scopes: ['manage:keys'] }]) {
      const { signed } = await mint(body)
      await signed.get(keys)
      const { keyId } = await mint({ scopes: ['manage:keys'] }, signed)
      await signed.exchange(`DELETE ${keys}/${keyId}`, undefined, 204, undefined)
    }
  })

  test('S9-07: the key of an editor keeps its permissions from before fine-grained scopes', async () => {
    const { signed } = await mint()
    const body = { name: freshName('kb') }
    const id = await signed.make(`${place}/knowledge-bases`, body, 'knowledgeBaseId')
    await signed.make(`${place}/knowledge-bases/${id}/documents`, {}, 'documentId')
  })

  test('a caller with only manage:keys can grant its own scopes, its own lifetime and its own principal only [security rule 7]', async () => {
    const { signed, keyId } = await mint({ scopes: ['read', 'manage:keys'], expiresAt: inAnHour() })
    const refuse = (json: Row, scope: string) =>
      signed.refused(
        `POST ${keys}`,
        { json: { label: 'x', ...json } },
        403,
        'forbidden',
        new RegExp(`'${scope}'`),
      )
    await refuse({}, 'write')
    await refuse({ scopes: ['manage'] }, 'manage')
    await refuse({ scopes: ['tools:invoke'] }, 'tools:invoke')
    await refuse({ scopes: ['read'], principalId: 'ada' }, 'manage:access')
    const later = { label: 'x', scopes: ['read'], expiresAt: '2999-01-01T00:00:00.000Z' }
    await signed.refused(`POST ${keys}`, { json: later }, 403, 'forbidden', /^expiresAt: /)
    const { key } = await mint({ scopes: ['read'], principalId: keyId }, signed)
    exactly(
      key,
      record({ label: key.label, role: 'viewer', scopes: ['read'], principalId: keyId, expiresAt: isoMs }),
    )
    const { keyId: writer } = await mint()
    await signed.refused(`POST ${keys}/${writer}/rotate`, {}, 403, 'forbidden', /'write'/)
    await signed.exchange(`POST ${keys}/${keyId}/rotate`, undefined, 201, {
      plaintext: token,
      key: record({
        label: matching(/^key_/),
        role: null,
        scopes: ['read', 'manage:keys'],
        principalId: keyId,
        expiresAt: isoMs,
      }),
      previous: record({
        keyId,
        label: matching(/^key_/),
        role: null,
        scopes: ['read', 'manage:keys'],
        lastUsedAt: oneOf(null, isoMs),
        expiresAt: isoMs,
      }),
    })
  })

  test('an admin can create a key with tools:invoke [security rule 7]', async () => {
    const { signed } = await mint({ role: 'admin' })
    const { key } = await mint({ scopes: ['tools:invoke'] }, signed)
    expect(key.scopes).toEqual(['tools:invoke'])
  })
})

describe('revoking, expiring and rotating keys', () => {
  test('S4.2-18 S3-01 S3-02 S3-03 S7.2-05 S7.2-07: a revoked key is rejected on the next request and stays in the list', async () => {
    const { token: plain, keyId, key, signed } = await mint()
    await signed.get(place)
    await operator.exchange(`DELETE ${keys}/${keyId}`, undefined, 204, undefined)
    await unauthorized(plain, /^the key was revoked$/)
    await unauthorized(wrongSecretOf(plain), invalid)
    const shown = { ...key, lastUsedAt: oneOf(null, isoMs), revokedAt: isoMs }
    await operator.exchange(`GET ${keys}/${keyId}`, undefined, 200, shown)
    const { revokedAt } = await operator.get(`${keys}/${keyId}`)
    const { items } = await operator.get(`${keys}?limit=200`)
    expect(items).toContainEqual(expect.objectContaining({ keyId, revokedAt }))
  })

  test('S3-17 S7.3-01 S7.3-api_key_not_found: a revocation is final and keeps its first timestamp', async () => {
    const { token: plain, keyId } = await mint()
    await operator.exchange(`DELETE ${keys}/${keyId}`, undefined, 204, undefined)
    const { revokedAt } = await operator.get(`${keys}/${keyId}`)
    await past(revokedAt)
    await operator.refused(`DELETE ${keys}/${keyId}`, {}, 404, 'api_key_not_found')
    await operator.refused(`POST ${keys}/${keyId}/rotate`, {}, 404, 'api_key_not_found')
    expect((await operator.get(`${keys}/${keyId}`)).revokedAt).toBe(revokedAt)
    await unauthorized(plain, /revoked/)
  })

  test('S3-01: a key can revoke itself and is rejected afterwards', async () => {
    const { token: plain, keyId, signed } = await mint({ scopes: ['manage:keys'] })
    await signed.exchange(`DELETE ${keys}/${keyId}`, undefined, 204, undefined)
    await unauthorized(plain, /revoked/)
  })

  test('S3-04 S3-05 S5.2-04 S7.2-04: a key is rejected after its expiration time, and a key without one never expires', async () => {
    const expiresAt = new Date(Date.now() + 5_000).toISOString()
    const { token: plain, signed } = await mint({ expiresAt })
    const { signed: lasting } = await mint()
    await signed.get(place)
    await past(expiresAt)
    await unauthorized(plain, /^the key has expired$/)
    await unauthorized(wrongSecretOf(plain), invalid)
    await lasting.get(place)
  })

  test('S5.9-07: both keys work during the grace period of a rotation, and revoking the old key does not affect the new one', async () => {
    const { keyId, signed, key } = await mint({ scopes: ['read', 'write:ingest'], principalId: 'ada' })
    const reply = await operator.exchange(`POST ${keys}/${keyId}/rotate`, { graceSeconds: 3_600 }, 201, {
      plaintext: token,
      key: { ...key, keyId: uuid, prefix, createdAt: isoMs },
      previous: { ...key, expiresAt: isoMs },
    })
    const { key: heir, previous, plaintext } = reply as { key: Row; previous: Row; plaintext: string }
    expect([heir.keyId, heir.prefix]).not.toEqual([key.keyId, key.prefix])
    expect(Date.parse(String(previous.expiresAt)) - Date.parse(String(heir.createdAt))).toBe(3_600_000)
    await signed.get(place)
    await as(plaintext).get(place)
    await operator.exchange(`DELETE ${keys}/${keyId}`, undefined, 204, undefined)
    await unauthorized(signed.token, /revoked/)
    await as(plaintext).get(place)
  })

  test('S5.9-07: the grace period is one day by default, can be 0, and is rejected if longer than a month', async () => {
    const { keyId, token: plain, signed } = await mint()
    await signed.get(place)
    const first = (await operator.send(`POST ${keys}/${keyId}/rotate`)).body as { key: Row; previous: Row }
    const grace = Date.parse(String(first.previous.expiresAt)) - Date.parse(String(first.key.createdAt))
    expect(grace).toBe(86_400_000)
    for (const graceSeconds of [-1, 2_592_001, 1.5, '60'])
      await operator.refused(
        `POST ${keys}/${keyId}/rotate`,
        { json: { graceSeconds } },
        400,
        'validation_error',
        /^graceSeconds: /,
      )
    await signed.get(place)
    expect((await operator.send(`POST ${keys}/${keyId}/rotate`, { json: { graceSeconds: 0 } })).status).toBe(
      201,
    )
    await unauthorized(plain, /expired/)
  })

  test('only one of several concurrent revocations succeeds; each of several concurrent rotations returns a working key', async () => {
    const { keyId } = await mint()
    const rotated = await Promise.all(
      Array.from({ length: 4 }, () => operator.send(`POST ${keys}/${keyId}/rotate`)),
    )
    for (const { status, body } of rotated) {
      expect(status).toBe(201)
      await as((body as { plaintext: string }).plaintext).get(place)
    }
    const revoked = await Promise.all(
      Array.from({ length: 6 }, () => operator.send(`DELETE ${keys}/${keyId}`)),
    )
    expect(revoked.map(({ status }) => status).sort()).toEqual([204, 404, 404, 404, 404, 404])
  })
})

describe('guessing keys [security rule 10]', () => {
  test('rate-limits guesses by address, and accepts an unused key from another address', async () => {
    const stranger = new Pool(wire.serving.url, { connections: 64, connect: { localAddress: '127.0.0.2' } })
    onTestFinished(() => stranger.destroy())
    const { signed } = await mint()
    const guess = async (n: number) => {
      const secret = String(n).padStart(32, 'g')
      const answer = await stranger.request({
        method: 'GET',
        path: place,
        headers: { authorization: `Bearer wb_live_${'guess'.padEnd(12, '0')}_${secret}` },
      })
      await answer.body.text()
      if (answer.statusCode === 429) expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
      return answer.statusCode
    }
    const guesses = Promise.all(Array.from({ length: 120 }, (_, n) => guess(n)))
    const startedAt = performance.now()
    await signed.get(place)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
    const statuses = new Set(await guesses)
    expect(statuses).toEqual(new Set([401, 429]))
  })
})
