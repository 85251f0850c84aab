import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { expect, test } from 'vitest'
import { committedManifest } from '../../scripts/manifest.mjs'
import { hasProgram } from '../harness/installed.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const { commands } = JSON.parse(committedManifest()) as {
  commands: Record<string, { flags: Record<string, { allowNo?: boolean }> }>
}
const ids = Object.keys(commands)
const searchFlags = Object.entries(commands['kb:search']!.flags).flatMap(([name, { allowNo }]) =>
  allowNo ? [`--${name}`, `--no-${name}`] : [`--${name}`],
)

/** Input before the tab, and the expected completions. */
const expectedCompletions: [typed: string, words: string[]][] = [
  ['wb ', [...new Set(ids.map(id => id.split(':')[0]!))]],
  ['wb kb ', ids.flatMap(id => (id.startsWith('kb:') ? [id.slice(3)] : []))],
  ['wb kb se', ['search']],
  ['workbase mcp servers ', ['add', 'list', 'login', 'logout', 'remove', 'review', 'show', 'test', 'update']],
  ['wb kb search --', [...searchFlags, '--help']],
  ['wb kb search refunds --mode ', ['hybrid', 'lexical', 'vector']],
  ['wb kb update --no-l', ['--no-lexical']],
  ['wb open ', ['api', 'docs']],
]
/** Values with colons, at which bash splits words. */
const scopes: [typed: string, words: string[]] = [
  'wb keys create ci --role viewer --scope write:',
  ['agents', 'ingest', 'kb', 'services'].map(name => `write:${name}`),
]

async function scriptOf(shell: string): Promise<Sandbox & { script: string }> {
  const sandbox = createSandbox()
  const { stdout, stderr, status } = await sandbox.wb(['autocomplete', shell])
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  const script = join(sandbox.home, `wb.${shell}`)
  writeFileSync(script, stdout)
  writeFileSync(join(sandbox.home, 'notes.md'), 'Notes.\n')
  return { ...sandbox, script }
}

const completionRequest = `source "$1"
shift
for COMP_LINE; do
  read -ra COMP_WORDS <<<"\${COMP_LINE//:/ : }"
  [[ $COMP_LINE == *" " || $COMP_LINE == *: ]] && COMP_WORDS+=('')
  COMP_POINT=\${#COMP_LINE} COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  _wb
  echo "\${COMPREPLY[*]}"
done
complete -p wb workbase
`

test('bash', async () => {
  const { script, env, home } = await scriptOf('bash')
  const typed = [...expectedCompletions, scopes].map(([line]) => line)
  const { stdout, stderr } = spawnSync('bash', ['-c', completionRequest, 'bash', script, ...typed], {
    env,
    cwd: home,
    encoding: 'utf8',
  })
  const lines = stdout.split('\n')
  const words = lines.slice(0, typed.length).map(line =>
    line
      .split(' ')
      .filter(word => !/^-\w$/.test(word))
      .sort(),
  )
  expect(stderr).toBe('')
  expect(words).toEqual([
    ...expectedCompletions.map(([, all]) => [...all].sort()),
    scopes[1].map(word => word.replace('write:', '')),
  ])
  expect(lines.slice(typed.length, -1)).toEqual(
    ['wb', 'workbase'].map(name => `complete -o default -F _wb ${name}`),
  )
})

test.skipIf(!hasProgram('fish'))('fish', async () => {
  const { script, env, home } = await scriptOf('fish')
  const ask =
    'source $argv[1]; for line in $argv[2..]; complete -C $line | string split -f1 \\t | string join " "; end'
  const all = [...expectedCompletions, scopes, ['wb add not', ['notes.md']] as const]
  const { stdout, stderr } = spawnSync(
    'fish',
    ['--no-config', '-c', ask, script, ...all.map(([line]) => line)],
    {
      env,
      cwd: home,
      encoding: 'utf8',
    },
  )
  expect(stderr).toBe('')
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map(line => line.split(' ').sort()),
  ).toEqual(all.map(([, words]) => [...words].sort()))
})

/** Zsh completes only in its line editor, so this script writes the offered completions to a file. */
const zshCapture = `compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]] { builtin compadd "$@"; return }
  local -a given
  builtin compadd -A given "$@"
  print -l -- $given >>$HOME/given
  builtin compadd "$@"
}
autoload -Uz compinit
compinit -D -u
PROMPT='ready> '
`

test.skipIf(!hasProgram('zsh'))('zsh', async () => {
  const { script, env, home } = await scriptOf('zsh')
  const given = join(home, 'given')
  writeFileSync(join(home, '.zshrc'), `${zshCapture}source ${script}\n`)
  const all = [...expectedCompletions, scopes, ['wb add not', ['notes.md']] as const]
  const words: string[][] = []
  writeFileSync(given, '')
  await typeLines(
    ['zsh', '-i'],
    { env: { ...env, ZDOTDIR: home }, cwd: home },
    all.map(([typed]) => `${typed}\t\x15`),
    () => {
      words.push([...new Set(readFileSync(given, 'utf8').split(/=?\n/).filter(Boolean))].sort())
      writeFileSync(given, '')
    },
  )
  expect(words).toEqual(all.map(([, expected]) => [...expected].sort()))
})

/** Types lines into a shell in a terminal, and waits after each line until the shell has run it. */
async function typeLines(
  [program, ...args]: [string, ...string[]],
  options: { env: Record<string, string>; cwd: string },
  lines: readonly string[],
  onDone: () => void,
): Promise<void> {
  const shell = spawn(program, args, { ...options, cols: 200, rows: 100 })
  let text = ''
  let onText = () => {}
  shell.onData(data => {
    text += data
    onText()
  })
  // The terminal itself would echo and edit input that is typed before the prompt appears.
  const prompted = (after: RegExp) =>
    new Promise<void>(done => {
      const from = text.length
      onText = () => after.test(text.slice(from)) && done()
    })
  await prompted(/ready> /)
  for (const line of lines) {
    const done = prompted(/the end\r\n[\s\S]*ready> /)
    shell.write(`${line}echo the' 'end\r`)
    await done
    onDone()
  }
  shell.kill()
}

test('prints setup instructions instead of the script in a terminal', async () => {
  const sandbox = createSandbox()
  const { status, text } = await runInFakeTerminal(sandbox, ['autocomplete', 'bash'])
  expect([status, stripSequences(text)]).toEqual([
    0,
    [
      '  In a pipe, wb autocomplete bash prints the completion script. To load it:',
      '  source <(wb autocomplete bash)',
      '      in this shell',
      "  echo 'source <(wb autocomplete bash)' >>~/.bashrc",
      '      in every new shell\n',
    ].join('\n'),
  ])
})

test("defaults to the user's shell, and lists the supported shells if another one is requested", async () => {
  const { wb, env } = createSandbox()
  env.SHELL = '/usr/bin/fish'
  expect((await wb(['autocomplete'])).stdout).toContain('complete -c wb')
  env.SHELL = '/bin/tcsh'
  expect(await wb(['autocomplete'])).toMatchObject({
    status: 2,
    stderr:
      '  ✗ Tcsh is not supported\n    wb autocomplete bash\n    wb autocomplete zsh\n    wb autocomplete fish\n',
  })
})
