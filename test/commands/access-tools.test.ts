import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSandbox, type Sandbox, sandboxFactory } from './sandbox.ts'
import { runInTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000
const teamPolicy = "team = $principal.team OR '*' = ANY(visible_to)"

const demo = sandboxFactory(async ({ wb, home }) => {
  const run = async (...args: string[]) => {
    const { status, stderr } = await wb([...args, '--as-operator'])
    expect(status, stderr).toBe(0)
  }
  writeFileSync(join(home, 'plan.md'), 'The blue team ships in May.')
  writeFileSync(join(home, 'budget.md'), 'The red team spends five.')
  writeFileSync(join(home, 'team.policy'), `${teamPolicy}\n`)
  await run('workspaces', 'create', 'demo')
  await run('workspaces', 'update', 'demo', '--rlac')
  await run('access', 'principals', 'create', 'alice', '--attribute', 'team=blue')
  await run('access', 'principals', 'create', 'bob', '--attribute', 'team=red')
  await run('kb', 'ingest', 'handbook', join(home, 'plan.md'), join(home, 'budget.md'), '--create')
  await run('documents', 'update', 'plan.md', '--set', 'team=blue', '--visible-to', 'alice')
  await run('documents', 'update', 'budget.md', '--set', 'team=red', '--visible-to', 'bob')
})

async function operatorOf(sandbox: Sandbox) {
  return (...args: string[]) => sandbox.wb([...args, '--as-operator'], { cwd: sandbox.home })
}

const linesOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t'))

describe('wb access explain, who, what and diff', () => {
  test('print decisions, principals, documents and changes', { timeout }, async () => {
    const sandbox = await demo()
    const wb = await operatorOf(sandbox)
    const explained = await wb('access', 'explain', '--principal', 'bob', '--document', 'plan.md')
    expect(explained.status).toBe(0)
    expect(linesOf(explained.stdout)).toEqual([
      ['visible', 'false'],
      ['principal', 'bob'],
      ['document', expect.any(String)],
      ['rule', 'builtIn'],
      ['col 1', "$principal.admin = 'true'", 'unknown', '$principal.admin is missing'],
      [
        'col 30',
        'current_principal_id() = ANY(visible_to)',
        'false',
        "current_principal_id() is 'bob'; visible_to is ['alice']",
      ],
      ['col 74', "'*' = ANY(visible_to)", 'false', "visible_to is ['alice']"],
    ])
    const who = await wb('access', 'who', '--document', 'plan.md')
    expect(linesOf(who.stdout).map(([id]) => id)).toEqual(['admin', 'alice'])
    expect(who.stderr).toContain('all other principals, which have no attributes, do not see this document')
    const counts = await wb('access', 'what', '--principal', 'alice')
    expect(linesOf(counts.stdout)[0]!.slice(0, 4)).toEqual(['handbook', '1', '2', 'built-in'])
    const files = await wb('access', 'what', '--principal', 'alice', '--kb', 'handbook')
    expect(linesOf(files.stdout).map(([, file]) => file)).toEqual(['plan.md'])
    const diff = await wb('access', 'diff', '--policy', 'team.policy')
    expect(linesOf(diff.stdout)).toEqual([['admin', '0', '2', '-plan.md, -budget.md']])
    const json = await wb('access', 'diff', '--policy', 'team.policy', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({
      items: [{ principalId: 'admin', loses: { total: 2 } }],
      everyoneElse: { gains: { total: 0 }, loses: { total: 0 } },
      rlacEnabled: true,
    })
  })

  test('a document that the caller cannot see is found by its ID', { timeout }, async () => {
    const sandbox = await demo()
    const { stdout } = await sandbox.wb(['access', 'what', '--principal', 'bob', '--kb', 'handbook'])
    const documentId = linesOf(stdout)[0]![0]!
    // Without authentication, the caller is not a principal, and sees no documents.
    const who = await sandbox.wb(['access', 'who', '--document', documentId])
    expect(who.status, who.stderr).toBe(0)
    expect(linesOf(who.stdout).map(([id]) => id)).toEqual(['admin', 'bob'])
    const byName = await sandbox.wb(['access', 'who', '--document', 'budget.md'])
    expect(byName.status).toBe(3)
  })

  test('a policy file is set, enabled and removed, and the answers follow', { timeout }, async () => {
    const sandbox = await demo()
    const wb = await operatorOf(sandbox)
    const update = (...args: string[]) => wb('kb', 'update', 'handbook', ...args)
    expect((await update('--policy', 'team.policy', '--policy-enabled')).status).toBe(0)
    const shown = JSON.parse((await wb('kb', 'show', 'handbook', '--json')).stdout)
    expect(shown).toMatchObject({ policyDsl: teamPolicy, policyEnabled: true })
    const explain = async (...args: string[]) => {
      const { stdout } = await wb(
        'access',
        'explain',
        '--principal',
        'bob',
        '--document',
        'budget.md',
        ...args,
      )
      return linesOf(stdout)
    }
    expect((await explain())[3]).toEqual(['rule', 'policy'])
    expect((await update('--no-policy-enabled', '--policy', '')).status).toBe(0)
    expect((await explain())[3]).toEqual(['rule', 'builtIn'])
    writeFileSync(join(sandbox.home, 'bad.policy'), 'team LIKE 1')
    const refused = await update('--policy', 'bad.policy')
    expect(refused.status).toBe(1)
    expect(refused.stderr).toContain('col 6: expected a comparison, IN or @>')
    expect(refused.stderr).toContain('Patterns are not supported.')
    const missing = await update('--policy', 'missing.policy')
    expect(missing).toMatchObject({ status: 2 })
    expect((await explain('--at', '2026-01-31')).join()).not.toContain('true')
  })

  test('explain prints sentences in a terminal, and wraps them', { timeout }, async () => {
    const sandbox = await demo()
    const args = ['access', 'explain', '--principal', 'bob', '--document', 'plan.md', '--as-operator']
    const { text } = await runInTerminal(sandbox, args)
    const shown = stripSequences(text)
    expect(shown).toContain('✗ bob does not see plan.md')
    expect(shown).toContain('unknown: $principal.admin is missing')
  })
})

describe('wb access test', () => {
  const cases = (more: string) => `policyFile: team.policy
principals:
  alice: { attributes: { team: blue } }
  root: { role: admin }
documents:
  plan: { metadata: { team: blue }, owner: bob, file: plan.md }
cases:
  - { principal: alice, document: plan, expect: allow }
  - { principal: root, document: { visibleTo: [root] }, expect: deny }
${more}`

  test('needs no runtime, prints each case, and fails if a case fails', { timeout }, async () => {
    const { wb, home } = createSandbox()
    writeFileSync(join(home, 'team.policy'), teamPolicy)
    const run = (more: string, ...args: string[]) => {
      writeFileSync(join(home, 'cases.yaml'), cases(more))
      return wb(['access', 'test', '-f', 'cases.yaml', ...args], { cwd: home })
    }
    const passed = await run('')
    expect(passed).toMatchObject({ status: 0, stderr: expect.stringContaining('all 2 cases passed') })
    expect(linesOf(passed.stdout)[0]).toEqual([
      'ok',
      'alice, plan',
      'allow',
      'allow',
      'team = $principal.team',
    ])
    const failed = await run('  - { name: eve is out, principal: eve, document: plan, expect: allow }')
    expect(failed).toMatchObject({ status: 1, stderr: expect.stringContaining('1 of 3 cases failed') })
    expect(linesOf(failed.stdout)[2]!.slice(0, 4)).toEqual(['failed', 'eve is out', 'allow', 'deny'])
    const json = await run('  - { principal: eve, document: plan, expect: allow }', '--json')
    expect(json.status).toBe(1)
    expect(JSON.parse(json.stdout)[2]).toMatchObject({ expected: 'allow', actual: 'deny', passed: false })
  })

  test('uses the built-in policy if the file has none', { timeout }, async () => {
    const { wb, home } = createSandbox()
    writeFileSync(
      join(home, 'cases.yaml'),
      `principals: { root: { role: admin } }
cases:
  - { principal: root, document: {}, expect: allow }
  - { principal: ann, document: { visibleTo: [ann] }, expect: allow }
  - { principal: bob, document: { visibleTo: [ann] }, expect: deny }`,
    )
    expect((await wb(['access', 'test', '-f', join(home, 'cases.yaml')])).status).toBe(0)
  })

  test('tests a document of a knowledge base by its ID', { timeout }, async () => {
    const sandbox = await demo()
    const wb = await operatorOf(sandbox)
    const { stdout } = await wb('access', 'what', '--principal', 'alice', '--kb', 'handbook')
    const documentId = linesOf(stdout)[0]![0]
    writeFileSync(
      join(sandbox.home, 'stored.yaml'),
      `cases:
  - { principal: alice, documentId: ${documentId}, expect: allow }
  - { principal: bob, documentId: ${documentId}, expect: allow }`,
    )
    const { status, stdout: results } = await wb('access', 'test', '-f', 'stored.yaml')
    expect(status).toBe(1)
    expect(linesOf(results).map(([result]) => result)).toEqual(['ok', 'failed'])
  })

  test.each([
    ['cases: []', 'cases: '],
    ['cases: [{ principal: a, expect: allow }]', 'must have either document or documentId'],
    ['cases: [{ principal: a, document: x, expect: allow }]', "there is no 'x' in documents"],
    ['policy: a = b\ncases: [{ principal: a, document: {}, expect: deny }]', 'col 1: a column is compared'],
    ['polcy: x\ncases: [{ principal: a, document: {}, expect: deny }]', 'polcy'],
    ['policyFile: missing.policy\ncases: [{ principal: a, document: {}, expect: deny }]', 'cannot be read'],
    ['cases: [', 'line 1'],
  ])('rejects %s', { timeout }, async (text, message) => {
    const { wb, home } = createSandbox()
    writeFileSync(join(home, 'cases.yaml'), text)
    const { status, stderr } = await wb(['access', 'test', '-f', 'cases.yaml'], { cwd: home })
    expect(status).toBe(1)
    expect(stderr).toContain(message)
  })
})
