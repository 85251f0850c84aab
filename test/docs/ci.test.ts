import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { createReaderSandbox, endServers } from './reader-sandbox.ts'

const page = readFileSync('docs/ci.md', 'utf8')

/** Returns the code block below the comment with this name. */
function block(name: string): string {
  return new RegExp(`<!-- ci: ${name} -->\\n(?:<!--.*-->\\n)?\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(page)![1]!
}

interface Workflow {
  jobs: { answers: { env: Record<string, string>; steps: { run?: string }[] } }
}

/** Stores its input like a repository's secrets and variables. */
const gh = `#!/bin/sh
case "$1" in
  secret) cat >"$HOME/secret-$3" ;;
  variable) printf %s "$5" >"$HOME/variable-$3" ;;
esac
`

test('the three commands of docs/ci.md set up a working job', {
  timeout: 60_000,
}, async () => {
  const { env, folder, home } = await createReaderSandbox()
  onTestFinished(() => endServers(home))
  writeFileSync(join(home, 'tools', 'gh'), gh)
  chmodSync(join(home, 'tools', 'gh'), 0o755)
  const config = join(home, 'access.yaml')
  writeFileSync(config, 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n')
  const run = (line: string, more: Record<string, string> = {}) =>
    spawnSync('bash', ['-euo', 'pipefail', '-c', line], {
      cwd: folder,
      env: { ...env, ...more },
      encoding: 'utf8',
    })
  expect(run(`cd && wb serve --config ${config}`).status).toBe(0)
  const { url } = JSON.parse(readFileSync(join(home, 'serving'), 'utf8').split('\n')[0]!) as { url: string }

  const created = run(block('keys').replace('wb keys create', 'wb keys create --as-operator'), {
    WB_CONFIG: config,
  })
  expect(created.status, created.stderr).toBe(0)
  const given = run(block('secrets').replace('https://wb.example.com', url))
  expect(given.status, given.stderr).toBe(0)

  const { env: wanted, steps } = (parse(block('workflow')) as Workflow).jobs.answers
  const filledIn = (text: string) =>
    text.replace(/\$\{\{ (var|secret)s\.(\w+) \}\}/, (_, kind: string, name: string) =>
      readFileSync(join(home, `${kind === 'var' ? 'variable' : 'secret'}-${name}`), 'utf8').trim(),
    )
  const job = {
    CI: 'true',
    ...Object.fromEntries(Object.entries(wanted).map(([name, text]) => [name, filledIn(text)])),
  }
  const lines = steps.flatMap(({ run: line }) => line ?? [])
  expect(lines.length).toBe(3)
  for (const line of lines) {
    const { status, stderr } = run(line, job)
    expect(status, `${line}\n${stderr}`).toBe(0)
  }
})
