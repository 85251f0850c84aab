import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { createReleasePolicy, isReleased, type ReleasePolicy } from '../../src/config/release-policy.ts'
import type { Release } from '../../src/config/schema.ts'
import { normalizeRef, resolveSecret } from '../../src/config/secret-ref.ts'

const folder = mkdtempSync(join(tmpdir(), 'wb-secret-'))
afterAll(() => rmSync(folder, { recursive: true }))

const emptyPolicy: ReleasePolicy = {
  allow: [],
  reserved: [],
  secretsDir: '/data/secrets',
  isSingleUser: false,
}
const ownWorkspace = '11111111-1111-4111-8111-111111111111'
const otherWorkspace = '22222222-2222-4222-8222-222222222222'

describe('resolving references', () => {
  const environment = createEnvironment({ KEY: 'sk-1', EMPTY: '' })
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return `file:${join(folder, name)}`
  }

  test('resolves a variable that is set and not empty', () => {
    expect(resolveSecret('env:KEY', environment)).toBe('sk-1')
    expect(() => resolveSecret('env:EMPTY', environment)).toThrow('env:EMPTY is not set')
    expect(() => resolveSecret('env:NONE', environment)).toThrow('env:NONE is not set')
    expect(() => resolveSecret('env:toString', environment)).toThrow('env:toString is not set')
  })

  test('reads a file on each call, without trailing white space', () => {
    const ref = write('key', ' sk-2 \n\n')
    expect(resolveSecret(ref, environment)).toBe(' sk-2')
    write('key', 'sk-3')
    expect(resolveSecret(ref, environment)).toBe('sk-3')
  })

  test('rejects a file that is empty, missing, a folder or too large', () => {
    expect(() => resolveSecret(write('blank', ' \n'), environment)).toThrow(/is empty/)
    expect(() => resolveSecret(`file:${folder}/none`, environment)).toThrow(/cannot be read/)
    expect(() => resolveSecret(`file:${folder}`, environment)).toThrow(/not a file/)
    expect(() => resolveSecret(write('large', 'x'.repeat(65_537)), environment)).toThrow(/larger than 64 KB/)
  })

  test.each([
    'file:key',
    'file:/a/../etc/key',
    'file:/proc/self/environ',
    'file://proc/self/environ',
    'file:/./sys/x',
    'file:/dev/zero',
  ])('rejects %s without reading it', ref =>
    expect(() => resolveSecret(ref, environment)).toThrow(/is not a file that can contain a secret/),
  )

  test.runIf(process.platform === 'linux')('rejects a link to a file below /proc', () => {
    symlinkSync('/proc/self/environ', join(folder, 'link'))
    expect(() => resolveSecret(`file:${folder}/link`, environment)).toThrow(
      /is not a file that can contain a secret/,
    )
  })

  test('rejects any other prefix', () => {
    expect(() => resolveSecret('https://example.com', environment)).toThrow(
      /prefix that this runtime does not resolve/,
    )
  })
})

describe('releases by default', () => {
  test('sends a well-known provider key only to its provider', () => {
    expect(isReleased('env:OPENAI_API_KEY', 'api.openai.com', ownWorkspace, emptyPolicy)).toBe(true)
    expect(isReleased('env:OPENROUTER_API_KEY', 'openrouter.ai', ownWorkspace, emptyPolicy)).toBe(true)
    expect(isReleased('env:COHERE_API_KEY', 'api.cohere.com', ownWorkspace, emptyPolicy)).toBe(true)
    for (const host of [
      'evil.example',
      'api.openai.com.evil.example',
      'api.openai.com:8443',
      'openrouter.ai',
    ])
      expect(isReleased('env:OPENAI_API_KEY', host, ownWorkspace, emptyPolicy), host).toBe(false)
  })

  test('allows files of a workspace in that workspace only', () => {
    expect(
      isReleased(`file:/data/secrets/${ownWorkspace}/key`, 'any.example', ownWorkspace, emptyPolicy),
    ).toBe(true)
    for (const ref of [
      `file:/data/secrets/${otherWorkspace}/key`,
      `file:/data/secrets/${ownWorkspace}/../${otherWorkspace}/key`,
      `file:/data/secrets/${ownWorkspace}x/key`,
      'file:/data/secrets/key',
      'file:/etc/passwd',
    ])
      expect(isReleased(ref, 'any.example', ownWorkspace, emptyPolicy), ref).toBe(false)
  })

  test('a link in a workspace folder releases no file outside of it', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'wb-secrets-'))
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
    const secrets = join(dataDir, 'secrets')
    const linked = 'c2f7a3b1-0000-4000-8000-000000000003'
    for (const name of [ownWorkspace, otherWorkspace]) {
      mkdirSync(join(secrets, name, '..2026', 'deep'), { recursive: true })
      writeFileSync(join(secrets, name, '..2026', 'key'), 'a secret')
      writeFileSync(join(secrets, name, '..2026', 'deep', 'key'), 'a secret')
    }
    writeFileSync(join(dataDir, 'outside'), 'a secret')
    const pathOf = (name: string) => join(secrets, ownWorkspace, name)
    // Kubernetes mounts secrets with these links.
    symlinkSync('..2026', pathOf('..data'))
    symlinkSync(join('..data', 'key'), pathOf('key'))
    symlinkSync(join('..', otherWorkspace, '..2026', 'key'), pathOf('relative'))
    symlinkSync(join(secrets, otherWorkspace, '..2026', 'key'), pathOf('absolute'))
    symlinkSync(join(secrets, otherWorkspace), pathOf('folder'))
    symlinkSync(pathOf('absolute'), pathOf('twice'))
    symlinkSync(join(dataDir, 'outside'), pathOf('outside'))
    symlinkSync(pathOf('circle'), pathOf('circle'))
    symlinkSync(join(secrets, otherWorkspace), join(secrets, linked))
    const leads = (path: string, workspaceId = ownWorkspace, secretsDir = secrets) =>
      isReleased(`file:${path}`, 'any.example', workspaceId, { ...emptyPolicy, secretsDir })

    for (const name of ['key', '..data/key', '..2026/deep/key', 'not there'])
      expect(leads(pathOf(name)), name).toBe(true)
    for (const name of [
      'relative',
      'absolute',
      'folder/..2026/key',
      'folder/..2026/deep/key',
      'twice',
      'outside',
    ])
      expect(leads(pathOf(name)), name).toBe(false)
    expect(leads(join(secrets, linked, '..2026', 'key'), linked)).toBe(false)

    // The data directory itself may be a link target.
    const link = join(dataDir, 'elsewhere')
    symlinkSync(secrets, link)
    expect(leads(join(link, ownWorkspace, 'key'), ownWorkspace, link)).toBe(true)
    expect(leads(join(link, ownWorkspace, 'absolute'), ownWorkspace, link)).toBe(false)
  })

  test('any *_API_KEY is sent to a known provider on a loopback bind without sign-in', () => {
    const open = { ...emptyPolicy, isSingleUser: true }
    expect(isReleased('env:MY_API_KEY', 'api.openai.com', ownWorkspace, open)).toBe(true)
    expect(isReleased('env:MY_API_KEY', 'evil.example', ownWorkspace, open)).toBe(false)
    expect(isReleased('env:MY_TOKEN', 'api.openai.com', ownWorkspace, open)).toBe(false)
    expect(isReleased('env:MY_API_KEY', 'api.openai.com', ownWorkspace, emptyPolicy)).toBe(false)
  })
})

describe('releases by the operator', () => {
  test('allow a reference or a prefix, limited to hosts and workspaces', () => {
    const policy: ReleasePolicy = {
      ...emptyPolicy,
      allow: [
        { ref: 'env:VLLM', hosts: ['GPU.example:8000', '*.inner.example'], workspaces: [ownWorkspace] },
        { prefix: 'file:/run/secrets/team' },
        { prefix: 'env:TEAM_' },
      ],
    }
    expect(isReleased('env:VLLM', 'gpu.example:8000', ownWorkspace, policy)).toBe(true)
    expect(isReleased('env:VLLM', 'a.inner.example:99', ownWorkspace, policy)).toBe(true)
    expect(isReleased('env:VLLM', 'gpu.example', ownWorkspace, policy)).toBe(false)
    expect(isReleased('env:VLLM', 'inner.example', ownWorkspace, policy)).toBe(false)
    expect(isReleased('env:VLLM', 'gpu.example:8000', otherWorkspace, policy)).toBe(false)
    expect(isReleased('file:/run/secrets/team/a', 'x', otherWorkspace, policy)).toBe(true)
    expect(isReleased('file:/run/secrets/team-b/a', 'x', otherWorkspace, policy)).toBe(false)
    expect(isReleased('file:/run/secrets/team/../boot', 'x', otherWorkspace, policy)).toBe(false)
    expect(isReleased('env:TEAM_A', 'x', otherWorkspace, policy)).toBe(true)
  })

  test('never release references of the configuration, in any spelling', () => {
    const folderOf = '/run/secrets'
    mkdirSync(join(folder, 'data'))
    writeFileSync(
      join(folder, 'workbase.yaml'),
      `version: 1
runtime: {secretRefs: {allow: [{prefix: "env:B"}, {prefix: "file:${folderOf}"}]}}
auth:
  mode: any
  bootstrapTokenRef: env:BOOTSTRAP
  oidc:
    issuer: https://i.example
    audience: a
    client: {clientId: c, clientSecretRef: "file:${folderOf}/client", sessionSecretRef: "file:${folderOf}/session"}
chat: {tokenRef: "env:OPENROUTER_API_KEY"}
mcp: {stdioServers: [{id: a, command: b, secretEnv: {A: "env:OPENAI_API_KEY", B: "env:BOX"}}]}`,
    )
    const { config } = loadConfig({ path: join(folder, 'workbase.yaml') }, createEnvironment({}))
    const policy = createReleasePolicy(config, join(folder, 'data'), true)
    for (const ref of [
      'env:BOOTSTRAP',
      'env:Bootstrap',
      `file:${folderOf}//client`,
      `file:${folderOf}/./SESSION`,
      'env:BOX',
    ])
      expect(isReleased(ref, 'any.example', ownWorkspace, policy), ref).toBe(false)
    expect(isReleased('env:BASIC', 'any.example', ownWorkspace, policy)).toBe(true)
    expect(isReleased('env:OPENROUTER_API_KEY', 'openrouter.ai', ownWorkspace, policy)).toBe(true)
    expect(isReleased('env:OPENAI_API_KEY', 'api.openai.com', ownWorkspace, policy)).toBe(true)
    expect(policy.isSingleUser).toBe(false)
  })
})

describe('reserved references [security rule 1]', () => {
  const isReleasedBy = (config: object, ref: string) => {
    const path = join(folder, 'own.yaml')
    const runtime = {
      secretRefs: { allow: [{ prefix: ref.slice(0, 6) }, { prefix: `file:${folder}` }] },
    }
    writeFileSync(path, JSON.stringify({ version: 1, runtime, ...config }))
    const { config: loaded } = loadConfig({ path }, createEnvironment({}))
    return isReleased(
      ref,
      'any.example',
      ownWorkspace,
      createReleasePolicy(loaded, join(folder, 'data'), true),
    )
  }
  const oidc = (client: object) => ({
    issuer: 'https://i.example',
    audience: 'a',
    client: { clientId: 'c', ...client },
  })

  test('include the bootstrap token, the client secret and all session secrets, also if unused', () => {
    const auth = (mode: string) => ({
      mode,
      ...(mode !== 'disabled' && { bootstrapTokenRef: 'env:BOOT' }),
      oidc: oidc({ clientSecretRef: 'env:CLIENT', sessionSecretRef: ['env:NEW', 'env:OLD'] }),
    })
    for (const mode of ['disabled', 'apiKey', 'oidc', 'any'])
      for (const ref of ['env:CLIENT', 'env:NEW', 'env:OLD', ...(mode === 'disabled' ? [] : ['env:BOOT'])]) {
        expect(isReleasedBy({ auth: auth(mode) }, ref), `${mode} ${ref}`).toBe(false)
        expect(isReleasedBy({}, ref), ref).toBe(true)
      }
    expect(isReleasedBy({ auth: auth('any') }, 'env:CLIENT_2')).toBe(true)
  })

  test('include other paths of a file, through links to it or to its parent folder', () => {
    mkdirSync(join(folder, 'kept'))
    writeFileSync(join(folder, 'kept/session'), 'secret')
    writeFileSync(join(folder, 'kept/other'), 'secret')
    symlinkSync(join(folder, 'kept'), join(folder, 'shelf'))
    symlinkSync(join(folder, 'kept/session'), join(folder, 'alias'))
    for (const own of ['kept/session', 'shelf/session', 'alias']) {
      const config = { auth: { mode: 'oidc', oidc: oidc({ sessionSecretRef: `file:${folder}/${own}` }) } }
      for (const name of ['kept/session', 'shelf/session', 'alias'])
        expect(isReleasedBy(config, `file:${folder}/${name}`), `${own} as ${name}`).toBe(false)
      expect(isReleasedBy(config, `file:${folder}/shelf/other`)).toBe(true)
    }
  })
})

describe('properties', () => {
  const part = fc.constantFrom(
    'a',
    'b',
    '..',
    '.',
    '',
    'secrets',
    ownWorkspace,
    otherWorkspace,
    'data',
    'proc',
  )
  const ref = fc.oneof(
    fc.constantFrom('env:OPENAI_API_KEY', 'env:A', 'env:A_API_KEY', 'env:BOOT'),
    fc.array(part, { maxLength: 6 }).map(parts => `file:/${parts.join('/')}`),
  )
  const host = fc.constantFrom('api.openai.com', 'openrouter.ai', 'evil.example', 'evil.example:444')
  const entry: fc.Arbitrary<Release> = fc.oneof(
    fc.record({ ref, hosts: fc.option(fc.array<string>(host, { minLength: 1 }), { nil: undefined }) }),
    fc.record({
      prefix: fc.oneof(ref, fc.constant('env:')),
      workspaces: fc.option(
        fc.constantFrom(ownWorkspace, otherWorkspace).map(id => [id]),
        { nil: undefined },
      ),
    }),
  )
  const policy: fc.Arbitrary<ReleasePolicy> = fc.record({
    allow: fc.array(entry, { maxLength: 3 }),
    reserved: fc.array(ref, { maxLength: 2 }),
    secretsDir: fc.constant('/data/secrets'),
    isSingleUser: fc.boolean(),
  })

  test('never release a path with .. or a reserved reference', () => {
    fc.assert(
      fc.property(ref, host, policy, (ref, host, policy) => {
        if (ref.split('/').includes('..')) expect(isReleased(ref, host, ownWorkspace, policy)).toBe(false)
        expect(isReleased(ref, host, ownWorkspace, { ...policy, reserved: [...policy.reserved, ref] })).toBe(
          false,
        )
      }),
    )
  })

  test('release a file by default only if it is in the folder of the workspace', () => {
    fc.assert(
      fc.property(ref, host, (ref, host) => {
        const isInFolder = normalizeRef(ref)?.startsWith(`file:/data/secrets/${ownWorkspace}/`) ?? false
        expect(isReleased(ref, host, ownWorkspace, emptyPolicy)).toBe(
          isInFolder || (ref === 'env:OPENAI_API_KEY' && host === 'api.openai.com'),
        )
      }),
    )
  })

  test('another allowed entry revokes nothing, and releases only to its hosts', () => {
    fc.assert(
      fc.property(ref, host, policy, entry, (ref, host, policy, added) => {
        const before = isReleased(ref, host, ownWorkspace, policy)
        const after = isReleased(ref, host, ownWorkspace, { ...policy, allow: [...policy.allow, added] })
        if (before) expect(after).toBe(true)
        if (after && !before && added.hosts)
          expect(added.hosts.some(allowed => host === allowed || host.replace(/:\d+$/, '') === allowed)).toBe(
            true,
          )
      }),
    )
  })
})
