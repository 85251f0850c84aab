import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withAccessTables } from '../../scripts/write-access-tables.ts'
import type { Access } from '../../src/contract/access.ts'
import { externalToolAccess, mcpToolAccess } from '../../src/contract/tool-access.ts'
import { type AccessFixture, openAccessFixture } from './access-fixture.ts'
import { type CallerKind, createCallerKinds } from './caller-kinds.ts'
import { here } from './requests.ts'
import { copyRoutes, routeName, routesOf } from './route-app.ts'
import { type RuleRow, readRules } from './rules-table.ts'

const rows = readRules('docs/security.md')
const routeRows = rows.filter(row => row.route)
const toolRows = rows.filter(row => !row.route)

const surface = copyRoutes()
const lines = new Set(routesOf(surface).map(routeName))
let world: AccessFixture
let kinds: CallerKind[]

beforeAll(async () => {
  world = await openAccessFixture(surface)
  kinds = await createCallerKinds(world)
})
afterAll(() => world.close())

/**
 * Compares the reviewed answers of a row with the actual ones. Runs one caller at a time because the first check
 * of a key is expensive.
 */
async function expectReviewedAnswers(
  row: RuleRow,
  find: (kind: CallerKind) => Promise<string>,
): Promise<void> {
  const found: Record<string, string> = {}
  for (const kind of kinds) found[kind.name] = await find(kind)
  expect(found).toEqual(Object.fromEntries(kinds.map(kind => [kind.name, kind.expected(row)])))
}

function routesWithoutRow(routes: Iterable<string>): string[] {
  return [...routes].filter(line => !routeRows.some(row => row.route === line))
}

describe('reviewed access tables', () => {
  test('match the declared rules', () => {
    const page = readFileSync('docs/security.md', 'utf8')
    expect(page, 'run: npx tsx scripts/write-access-tables.ts').toBe(withAccessTables(page))
  })

  test('contain every route, and the check detects a missing one', () => {
    expect(routesWithoutRow(lines)).toEqual([])
    expect(routesWithoutRow(['GET /api/v1/unreviewed'])).toEqual(['GET /api/v1/unreviewed'])
  })

  test('contain only existing routes, each once', () => {
    expect(routeRows.filter(row => !lines.has(row.route!)).map(row => row.line)).toEqual([])
    expect(new Set(rows.map(row => row.line)).size).toBe(rows.length)
  })

  test('are checked with at least 35 kinds of callers', () => {
    expect(kinds.length).toBeGreaterThanOrEqual(35)
  })
})

describe('S2.6-10 S4.2-22 S4.2-27 S5.4-01 S5.4-02 S5.4-03 S5.4-05 S5.5-01 S5.5-02 S5.5-05 S5.5-06 S5.5-07 S5.5-09 S5.5-13 S5.5-15 S5.5-18 S5.5-31 S7.2-08 S7.2-09: access to routes', () => {
  test.each(routeRows.map(row => [row.line, row] as const))('%s', (_line, row) =>
    expectReviewedAnswers(row, kind => kind.request(row)),
  )
})

describe('access to tools', () => {
  const rules: Readonly<Record<string, Access>> = {
    ...Object.fromEntries(Object.entries(mcpToolAccess).map(([tool, rule]) => [`\`${tool}\``, rule])),
    'a tool of another server': externalToolAccess,
  }

  test('is listed for each tool', () => {
    expect(toolRows.map(row => row.line).sort()).toEqual(Object.keys(rules).sort())
  })

  test.each(toolRows.map(row => [row.line, row] as const))('%s', (line, row) =>
    expectReviewedAnswers(row, kind => kind.evaluate(rules[line]!, here)),
  )
})

/**
 * Routes that a fine-grained scope opens and that a key without it cannot use.
 * @see docs/requirements.md#scopes
 */
const covered: readonly (readonly [ids: string, scope: string, lines: readonly string[]])[] = [
  [
    'S2.4-04',
    'write:ingest',
    [
      '`POST KB/documents`',
      '`PATCH KB/documents/{documentId}`',
      '`DELETE KB/documents/{documentId}`',
      '`POST KB/documents/bulk-delete`',
      '`POST KB/documents/trash/{entryId}/restore`',
      '`POST KB/documents/trash/bulk-restore`',
      '`POST KB/documents/trash/bulk-delete`',
      '`POST KB/ingest`',
      '`POST KB/ingest/import`',
      '`POST KB/ingest/file`',
      '`POST KB/ingest/check`',
      '`POST KB/ingest/batch`',
      '`POST W/chunk-preview`',
      '`POST KB/records`',
      '`POST W/jobs/{jobId}/cancel`',
      '`DELETE KB/records/{recordId}`',
    ],
  ],
  [
    'S2.4-05',
    'write:kb',
    [
      '`POST W/knowledge-bases`',
      '`PATCH KB`',
      '`PATCH KB` that sends the stored policy',
      '`DELETE KB`',
      '`POST KB/compact`',
      '`POST KB/reindex`',
      '`POST KB/rename`',
      '`POST W/knowledge-bases/import`',
      '`POST KB/filters`',
      '`PATCH KB/filters/{knowledgeFilterId}`',
      '`DELETE KB/filters/{knowledgeFilterId}`',
      '`PATCH KB/folders`',
    ],
  ],
  [
    'S2.4-06',
    'write:services',
    [
      ['chunking-services', 'chunkingServiceId'],
      ['embedding-services', 'embeddingServiceId'],
      ['reranking-services', 'rerankingServiceId'],
      ['llm-services', 'llmServiceId'],
      ['mcp-servers', 'mcpServerId'],
    ]
      .flatMap(([of, id]) => [`\`POST W/${of}\``, `\`PATCH W/${of}/{${id}}\``, `\`DELETE W/${of}/{${id}}\``])
      .concat('`POST W/mcp-servers/{mcpServerId}/review`'),
  ],
  [
    'S2.4-07',
    'write:agents',
    [
      '`POST W/agents`',
      '`POST W/agents/from-template`',
      '`PATCH W/agents/{agentId}`',
      '`DELETE W/agents/{agentId}`',
    ],
  ],
  [
    'S2.4-08',
    'manage:keys',
    [
      '`GET W/api-keys`',
      '`POST W/api-keys`',
      '`GET W/api-keys/{keyId}`',
      '`POST W/api-keys/{keyId}/rotate`',
      '`DELETE W/api-keys/{keyId}`',
    ],
  ],
  [
    'S2.4-09',
    'manage:access',
    [
      '`GET W/audit`',
      '`GET W/audit/decisions`',
      '`GET W/principals`',
      '`POST W/principals`',
      '`GET W/principals/{principalId}`',
      '`PATCH W/principals/{principalId}`',
      '`DELETE W/principals/{principalId}`',
      '`POST W/policy/compile-preview`',
      '`GET W/policy/audit`',
      '`POST W/policy/explain`',
      '`POST W/policy/viewers`',
      '`POST W/policy/documents`',
      '`POST W/policy/counts`',
      '`POST W/policy/diff`',
      '`GET KB/insights`',
      '`DELETE KB/insights`',
    ],
  ],
  ['S2.4-10', 'manage:workspace', ['`DELETE W`']],
  ['S2.4-03', 'read:content', []],
  ['S2.4-03', 'read:chat', []],
  // Opens exactly these routes: docs/requirements.md#S2.4-17
  ['S2.4-03', 'read:audit', ['`GET W/audit`', '`GET W/audit/decisions`', '`GET KB/insights`']],
]

describe('routes opened by a fine-grained scope', () => {
  const ofKey = (scope: string) => kinds.find(kind => kind.name === `a key with only ${scope}`)!

  test.each(covered)('%s: %s', async (_ids, scope, expected) => {
    const opened: string[] = []
    for (const row of routeRows)
      if ((await ofKey(scope).request(row)) === 'yes' && (await ofKey('tools:invoke').request(row)) !== 'yes')
        opened.push(row.line)
    expect(opened.sort()).toEqual([...expected].sort())
  })

  test('S2.4-03: read routes document the scope that covers them, and are open to every key', () => {
    const ruleOf = (line: string) => routesOf(surface).find(route => routeName(route) === line)?.access
    const KB = '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId'
    for (const line of [
      `POST ${KB}/search`,
      `POST ${KB}/search/why-not`,
      `GET ${KB}/documents`,
      `GET ${KB}/documents/:documentId`,
      `GET ${KB}/documents/:documentId/chunks`,
      `GET ${KB}/documents/:documentId/explain`,
    ])
      expect(ruleOf(line)).toEqual({ kind: 'member', covers: 'read:content' })
  })
})

describe('the scope that the requirements derive from a path is declared by its route', () => {
  const ofWorkspaces = routesOf(surface).filter(route => route.path.includes(':workspaceId'))

  test('S1-02: no workspace route is open to all', () => {
    const guarded = routesOf(surface).filter(({ path }) => path.startsWith('/api/v1/workspaces'))
    expect(guarded.length).toBeGreaterThan(30)
    expect(guarded.filter(({ access }) => access.kind === 'open').map(routeName)).toEqual([])
  })

  test.each(ofWorkspaces.map(route => [routeName(route), route] as const))(
    'S5.5-04 S5.5-08 S5.5-10 S5.5-11 S5.5-12 S5.5-14 S5.5-17 S5.5-19: %s',
    (line, { access }) => {
      expect(access.kind === 'needs' ? access.scope : null).toBe(scopeOfPath(line))
    },
  )
})

/**
 * Returns the scope that docs/requirements.md#privileges derives from a method and a path; null if access to the
 * workspace is enough.
 */
function scopeOfPath(line: string): string | null {
  const [method, path] = line.split(' ') as [string, string]
  if (path.includes('/api-keys')) return 'manage:keys'
  if (/\/(?:principals|policy)\b/.test(path)) return 'manage:access'
  if (line === 'DELETE /api/v1/workspaces/:workspaceId') return 'manage:workspace'
  // manage:access also opens the audit trail of a workspace.
  if (/^GET \/api\/v1\/workspaces\/:workspaceId\/audit(\/decisions)?$/.test(line)) return 'read:audit'
  // The query log contains what others did, like the audit trail.
  if (path.endsWith('/insights')) return method === 'GET' ? 'read:audit' : 'manage:access'
  if (['GET', 'HEAD', 'OPTIONS'].includes(method)) return null
  if (
    /\/(?:test-connection|connect\/verify|mcp|search(?:\/why-not)?|openai\/v1\/chat\/completions)$/.test(
      path,
    ) ||
    path.includes('/conversations')
  )
    return null
  // Cancelling an ingest job requires the scope that starts one.
  if (/\/jobs\/:jobId\/cancel$/.test(path)) return 'write:ingest'
  if (/\/(?:ingest|documents|records|chunk-preview)\b/.test(path)) return 'write:ingest'
  if (path.includes('/knowledge-bases')) return 'write:kb'
  // Signing in to a tool server affects only the caller.
  if (/\/sign-in(?:\/finish)?$/.test(path)) return null
  if (/-services\b|\/mcp-servers\b/.test(path)) return 'write:services'
  if (path.includes('/agents')) return 'write:agents'
  return 'write'
}
