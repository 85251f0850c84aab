/**
 * Writes the access tables of docs/security.md from the declarations of the routes and tools. A comment above
 * each table names a group of rules, or the topics of routes below a workspace:
 * `<!-- access: open -->`, `<!-- access: kb, filters -->`.
 *
 *   npx tsx scripts/write-access-tables.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Access } from '../src/contract/access.ts'
import { api } from '../src/contract/index.ts'
import type { Route, Topic } from '../src/contract/route.ts'
import { grantsScope, type Scope, scopes, scopesOfRole } from '../src/contract/scopes.ts'
import { externalToolAccess, mcpToolAccess } from '../src/contract/tool-access.ts'

const columns = [
  'disabled',
  'allow',
  'reject',
  'operator',
  'viewer of all',
  'viewer',
  'editor',
  'admin',
  'a key with only',
  'other workspace',
  'invalid',
]

type RuleKind = Exclude<Access['kind'], 'needs' | 'ownRecords'>

/** Cells of rules without scopes, in the order of the columns. */
const cells: Readonly<Record<RuleKind, string>> = {
  open: 'yes yes yes yes yes yes yes yes anything yes yes',
  anyCaller: 'yes yes 401 yes yes yes yes yes anything yes 401',
  signedIn: '401 401 401 yes yes yes yes yes anything yes 401',
  platform: 'yes yes 401 yes yes 403 403 403 nothing 403 401',
  operator: 'yes 401 401 yes yes 403 403 403 nothing 403 401',
  owner: '401 401 401 yes 403 403 403 403 nothing 403 401',
  setup: 'yes 401 401 401 401 401 401 401 nothing 401 401',
  member: 'yes yes 401 yes yes yes yes yes anything 403 401',
}

/** Row texts for routes whose rule depends on the body: for a request without a change, then for each change. */
const rowTexts: Readonly<Record<string, readonly [unchanged: string, ...changes: string[]]>> = {
  rlacEnabled: ['sends the stored `rlacEnabled`', 'changes `rlacEnabled`'],
  'policyDsl,policyEnabled,queryLog': [
    'sends the stored policy',
    'clears `policyDsl`',
    'turns `policyEnabled` off',
    'turns `queryLog` on',
  ],
}

function cellsOf(rule: Access): string[] {
  if (rule.kind !== 'needs' && rule.kind !== 'ownRecords') return cells[rule.kind].split(' ')
  const { scope, alternative } = rule
  const extra = rule.kind === 'needs' ? rule.extraScope?.scope : undefined
  return cellsOfScopes(granted => {
    const isGranted =
      grantsScope(granted, scope) || (alternative !== undefined && grantsScope(granted, alternative))
    return isGranted && (!extra || grantsScope(granted, extra))
  })
}

function cellsOfScopes(isEnough: (granted: readonly Scope[]) => boolean): string[] {
  const cellOf = (role: keyof typeof scopesOfRole) => (isEnough(scopesOfRole[role]) ? 'yes' : '403')
  const single = scopes.filter(scope => isEnough([scope]))
  const isAlone = (scope: Scope) => single.includes(scope)
  const pairs = scopes.flatMap((one, at) =>
    scopes
      .slice(at + 1)
      .filter(other => !isAlone(one) && !isAlone(other) && isEnough([one, other]))
      .map(other => `\`${one}\` and \`${other}\``),
  )
  const keys = [...single.map(scope => `\`${scope}\``), ...pairs].join(', ')
  const roles = [cellOf('viewer'), cellOf('viewer'), cellOf('editor'), cellOf('admin')]
  return ['yes', 'yes', '401', 'yes', ...roles, keys || 'nothing', '403', '401']
}

function rowsOf({ method, path, access }: Route): string[][] {
  const line = `\`${method} ${shortened(path)}\``
  if (access.kind === 'ownRecords')
    return [
      [line, ...cellsOf(access)],
      [`${line} that the caller started`, ...cellsOf({ ...access, kind: 'member' })],
    ]
  if (access.kind !== 'needs' || !access.extraScope) return [[line, ...cellsOf(access)]]
  const [unchanged, ...changes] = rowTexts[String(access.extraScope.condition.fields)]!
  const usual = cellsOf({ ...access, extraScope: undefined })
  return [
    [line, ...usual],
    [`${line} that ${unchanged}`, ...usual],
    ...changes.map(change => [`${line} that ${change}`, ...cellsOf(access)]),
  ]
}

function shortened(path: string): string {
  return path
    .replaceAll(/:(\w+)/g, '{$1}')
    .replace('/api/v1/workspaces/{workspaceId}/knowledge-bases/{knowledgeBaseId}', 'KB')
    .replace('/api/v1/workspaces/{workspaceId}', 'W')
}

const tools: readonly (readonly [tool: string, rule: Access])[] = [
  ...Object.entries(mcpToolAccess).map(([tool, rule]) => [`\`${tool}\``, rule] as const),
  ['a tool of another server', externalToolAccess],
]

/** Rules of the tables of routes that belong to no workspace. */
const groups: Readonly<Record<string, readonly RuleKind[]>> = {
  open: ['open'],
  runtime: ['anyCaller', 'signedIn', 'platform', 'operator', 'owner'],
  setup: ['setup'],
}
const rootKinds: readonly string[] = Object.values(groups).flat()

function routesOf(topic: string): Route[] {
  return Object.values((api as Record<string, Topic>)[topic]!)
}

/** Returns the lines of a table. */
function tableOf(names: readonly string[]): string[] {
  const [name] = names as [string]
  if (name === 'tools')
    return lines(
      ['tool', ...columns],
      tools.map(([tool, rule]) => [tool, ...cellsOf(rule)]),
    )
  const head = ['route', ...columns]
  const kinds: readonly string[] | undefined = groups[name]
  const rows = (kinds ? Object.keys(api) : names)
    .flatMap(routesOf)
    .filter(({ access: { kind } }) => (kinds ? kinds.includes(kind) : !rootKinds.includes(kind)))
    .flatMap(rowsOf)
  if (name !== 'setup') return lines(head, rows)
  // Only for setup routes do a credential and the bootstrap token change the response.
  const withSetupColumns = (row: readonly string[], credential: string, bootstrap: string) =>
    row.toSpliced(4, 0, bootstrap).toSpliced(2, 0, credential)
  return lines(
    withSetupColumns(head, 'disabled, with a credential', 'bootstrap'),
    rows.map(row => withSetupColumns(row, '401', 'yes')),
  )
}

function lines(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`)
}

/** Returns the page with its access tables filled in. */
export function withAccessTables(page: string): string {
  return page.replaceAll(
    /(<!-- access: ([\w, ]+) -->\n\n)(?:\|.*\n)*/g,
    (_, comment: string, topics: string) => `${comment}${tableOf(topics.split(', ')).join('\n')}\n`,
  )
}

if (import.meta.filename === process.argv[1]) {
  const page = new URL('../docs/security.md', import.meta.url)
  writeFileSync(page, withAccessTables(readFileSync(page, 'utf8')))
}
