import { describe, expect, test } from 'vitest'
import { startProvider } from '../../harness/identity-provider.ts'
import { waitUntil } from '../../harness/runtime.ts'
import { createOidcFixture, minuteMs, type OidcFixture } from './oidc-fixture.ts'

const unavailable = 'the token cannot be checked: the keys of the identity provider are unavailable'

async function startWithVerifier(more: Parameters<typeof createOidcFixture>[1] = {}) {
  const idp = await startProvider({ accessTokenSeconds: 7 * 86_400 })
  const made = createOidcFixture(idp, more)
  const loads = () => idp.count('/jwks')
  return { idp, loads, ...made }
}

async function outcome({ verifier }: Pick<OidcFixture, 'verifier'>, token: string): Promise<string> {
  return verifier.verify(token)!.then(
    found => found.subject.id,
    error => {
      expect(error).toMatchObject({ code: 'unauthorized' })
      return (error as Error).message
    },
  )
}

const unverified = 'the signature of the token was not verified'

describe('loading the keys', () => {
  test('S5.3-03: happens with the first token, and once for concurrent requests', async () => {
    const { idp, loads, ...rest } = await startWithVerifier()
    await rest.provider.discover()
    expect(loads()).toBe(0)
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, at) => idp.sign({ sub: `user-${at}` })))
    const found = await Promise.all(tokens.map(token => outcome(rest, token)))
    expect(found).toEqual(tokens.map((_, at) => `user-${at}`))
    expect(loads()).toBe(1)
    expect(idp.count('/.well-known/openid-configuration')).toBe(1)
  })

  test('S2.2-13 S5.3-11: uses jwksUri without asking the provider for the address', async () => {
    const idp = await startProvider()
    const made = createOidcFixture(idp, { jwksUri: `${idp.issuer}/jwks` })
    await made.provider.discover()
    expect(await outcome(made, await idp.sign())).toBe('alice')
    expect(idp.requests.map(({ path }) => path)).toEqual(['/jwks'])
  })

  test.each([
    [{ status: 404 }, 'it responded with status 404'],
    [{ status: 500 }, 'it responded with status 500'],
    [{ status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'it responded with status 302'],
    [{ status: 200, body: 'nothing' }, 'its response is not a key set'],
    [{ status: 200, body: '{"keys":[7]}' }, 'its response is not a key set'],
    [{ status: 200, body: 'null' }, 'its response is not a key set'],
    [{ status: 204 }, 'it responded with status 204'],
    [{ status: 200, body: ' '.repeat(1_048_577) }, 'its response has more than 1048576 bytes'],
    ['reset' as const, 'it cannot be reached'],
  ])(
    'fails for a response of %j: the caller gets identity_provider_unavailable, and the log has the reason',
    async (instead, why) => {
      const { idp, warnings, ...rest } = await startWithVerifier()
      idp.intercept = ({ path }) => (path === '/jwks' ? instead : undefined)
      expect(await outcome(rest, await idp.sign())).toBe(unavailable)
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toContain(why)
    },
  )

  test('must succeed before a token from the provider is accepted or rejected', async () => {
    const { idp, clock, verifier, ...rest } = await startWithVerifier()
    const token = await idp.sign()
    await idp.stop()
    const refused = { code: 'identity_provider_unavailable', status: 503 }
    await expect(verifier.check(token)).rejects.toMatchObject(refused)
    await expect(verifier.check(token)).rejects.toMatchObject(refused)
    expect(rest.warnings.at(-1)).toContain('it refused the connection')
    await idp.restart()
    clock.advance(1_000)
    expect((await verifier.check(token)).subject.id).toBe('alice')
  })

  test('times out after ten seconds', async () => {
    const { idp, clock, warnings, ...rest } = await startWithVerifier()
    const token = await idp.sign()
    await rest.provider.discover()
    idp.intercept = () => 'hang'
    const pending = outcome(rest, token)
    await waitUntil(() => idp.count('/jwks') === 1)
    clock.advance(10_000)
    expect(await pending).toBe(unavailable)
    expect(warnings[0]).toContain('it did not respond within 10 seconds')
  })

  test('is retried once a second until there are keys', async () => {
    const { idp, clock, loads, ...rest } = await startWithVerifier()
    await rest.provider.discover()
    idp.intercept = ({ path }) => (path === '/jwks' ? { status: 503 } : undefined)
    for (let at = 0; at < 50; at++) expect(await outcome(rest, await idp.sign({ at }))).toBe(unavailable)
    expect(loads()).toBe(1)
    clock.advance(1_000)
    expect(await outcome(rest, await idp.sign())).toBe(unavailable)
    expect(loads()).toBe(2)
  })
})

describe('new keys', () => {
  test('S5.3-04: of the provider work at once, without a restart', async () => {
    const { idp, loads, ...rest } = await startWithVerifier()
    const old = await idp.sign()
    expect(await outcome(rest, old)).toBe('alice')
    await idp.rotateKeys('kept')
    expect(await outcome(rest, await idp.sign({ sub: 'bob' }))).toBe('bob')
    expect(await outcome(rest, old)).toBe('alice')
    expect(loads()).toBe(2)
  })

  test('S5.3-04: are loaded once for concurrent requests', async () => {
    const { idp, loads, ...rest } = await startWithVerifier()
    expect(await outcome(rest, await idp.sign())).toBe('alice')
    await idp.rotateKeys('kept')
    const tokens = await Promise.all(Array.from({ length: 10 }, (_, at) => idp.sign({ sub: `user-${at}` })))
    const found = await Promise.all(tokens.map(token => outcome(rest, token)))
    expect(found).toEqual(tokens.map((_, at) => `user-${at}`))
    expect(loads()).toBe(2)
  })

  test('S5.3-04: are loaded at most twice a minute during a flood of unknown keys, and known keys keep working', async () => {
    const { idp, clock, loads, ...rest } = await startWithVerifier()
    const good = await idp.sign()
    const flood = async () => {
      const tokens = Array.from({ length: 100 }, () => idp.sign({}, { kid: crypto.randomUUID() }, 'stolen'))
      const outcomes = await Promise.all((await Promise.all(tokens)).map(token => outcome(rest, token)))
      expect(new Set(outcomes)).toEqual(new Set([unverified]))
      expect(await outcome(rest, good)).toBe('alice')
    }
    expect(await outcome(rest, good)).toBe('alice')
    expect(loads()).toBe(1)
    await flood()
    expect(loads()).toBe(2)
    clock.advance(29_999)
    await flood()
    expect(loads()).toBe(2)
    clock.advance(1)
    await flood()
    expect(loads()).toBe(3)
  })

  test('that cannot be loaded cause identity_provider_unavailable, not an invalid token', async () => {
    const { idp, clock, verifier } = await startWithVerifier()
    await verifier.check(await idp.sign())
    await idp.rotateKeys('kept')
    const fresh = await idp.sign()
    await idp.stop()
    for (let at = 0; at < 3; at++)
      await expect(verifier.check(fresh)).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
    await idp.restart()
    clock.advance(30_000)
    expect((await verifier.check(fresh)).subject.id).toBe('alice')
  })

  test('cause cached tokens to be verified again [security rule 11]', async () => {
    const { idp, verifier } = await startWithVerifier()
    const token = await idp.sign()
    const first = await verifier.verify(token)
    await idp.rotateKeys('kept')
    await verifier.verify(await idp.sign({ sub: 'bob' }))
    const second = await verifier.verify(token)
    expect(second).toEqual(first)
    expect(second).not.toBe(first)
    expect(await verifier.verify(token)).toBe(second)
  })
})

describe('age of the keys', () => {
  test('a withdrawn key stops working within ten minutes [security rule 11]', async () => {
    const { idp, clock, loads, ...rest } = await startWithVerifier()
    const token = await idp.sign()
    expect(await outcome(rest, token)).toBe('alice')
    await idp.rotateKeys('withdrawn')
    clock.advance(10 * minuteMs - 1)
    expect(await outcome(rest, token)).toBe('alice')
    expect(loads()).toBe(1)
    clock.advance(1)
    expect(await outcome(rest, token)).toBe(unverified)
    expect(loads()).toBe(3)
    expect(await outcome(rest, token)).toBe(unverified)
    expect(loads()).toBe(3)
  })

  test('keys that are ten minutes old are loaded once for concurrent requests', async () => {
    const { idp, clock, loads, ...rest } = await startWithVerifier()
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, at) => idp.sign({ sub: `user-${at}` })))
    await Promise.all(tokens.map(token => outcome(rest, token)))
    clock.advance(10 * minuteMs)
    const found = await Promise.all(tokens.map(token => outcome(rest, token)))
    expect(found).toEqual(tokens.map((_, at) => `user-${at}`))
    expect(loads()).toBe(2)
  })

  test('keys keep working for a day while the provider is down', async () => {
    const { idp, clock, warnings, ...rest } = await startWithVerifier()
    const token = await idp.sign()
    expect(await outcome(rest, token)).toBe('alice')
    await idp.stop()
    clock.advance(10 * minuteMs)
    expect(await outcome(rest, token)).toBe('alice')
    expect(await outcome(rest, token)).toBe('alice')
    expect(warnings).toHaveLength(1)
    clock.advance(23 * 60 * minuteMs)
    expect(await outcome(rest, token)).toBe('alice')
    await waitUntil(() => warnings.length === 2)
    clock.advance(50 * minuteMs)
    expect(await outcome(rest, token)).toBe(unavailable)
    await idp.restart()
    clock.advance(1_000)
    expect(await outcome(rest, token)).toBe('alice')
  })

  test('requests do not wait for a provider that is down, which is retried twice a minute', async () => {
    const { idp, clock, loads, ...rest } = await startWithVerifier()
    const token = await idp.sign()
    expect(await outcome(rest, token)).toBe('alice')
    idp.intercept = ({ path }) => (path === '/jwks' ? { status: 503 } : undefined)
    clock.advance(10 * minuteMs)
    for (let at = 0; at < 20; at++) expect(await outcome(rest, token)).toBe('alice')
    expect(loads()).toBe(2)
    idp.intercept = () => 'hang'
    clock.advance(30_000)
    for (let at = 0; at < 20; at++) expect(await outcome(rest, token)).toBe('alice')
    await waitUntil(() => loads() === 3)
  })

  test('a key withdrawn while the provider was down stops working soon after the provider is back', async () => {
    const { idp, clock, loads, ...rest } = await startWithVerifier()
    const token = await idp.sign()
    expect(await outcome(rest, token)).toBe('alice')
    await idp.stop()
    clock.advance(10 * minuteMs)
    expect(await outcome(rest, token)).toBe('alice')
    await idp.rotateKeys('withdrawn')
    await idp.restart()
    clock.advance(30_000)
    await outcome(rest, token)
    await waitUntil(() => loads() >= 2)
    await waitUntil(async () => (await outcome(rest, token)) === unverified)
  })
})
