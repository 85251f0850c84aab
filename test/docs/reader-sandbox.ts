import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createPreparedFolder, createSandbox, type Sandbox } from '../commands/sandbox.ts'
import { hasProgram } from '../harness/installed.ts'

const bin = resolve('bin/run.js')

/** Starts `wb serve` on a free port and waits until it is ready. All other commands run as typed. */
const wbScript = `#!/bin/sh
if [ "$1" = serve ]; then
  shift
  "${process.execPath}" "${bin}" serve --port 0 --json "$@" >"$HOME/serving" 2>&1 &
  echo $! >>"$HOME/pids"
  until grep -q '"event":"ready"' "$HOME/serving"; do kill -0 $! || exit 1; sleep 0.1; done
  exit 0
fi
exec "${process.execPath}" "${bin}" "$@"
`
/** Replaces a missing jq, and checks that its input is JSON. */
const jqScript = `#!/bin/sh
exec "${process.execPath}" -e 'JSON.parse(require("fs").readFileSync(0, "utf8"))'
`
const npxScript = '#!/bin/sh\nshift\nexec wb "$@"\n'

const papers: Record<string, string> = {
  'flow.md': '# Flow past a plate\n\nThe boundary layer on a flat plate, and heat transfer through it.\n',
  'flutter.md': '# Flutter\n\nFlutter of a wing at supersonic speed.\n',
}

/**
 * Creates a sandbox for the commands of a page: `wb` and `npx` on the PATH, folders with papers and documents, and
 * the knowledge bases `handbook` and `papers`.
 */
export async function createReaderSandbox(
  sandbox: Sandbox = createSandbox(),
): Promise<Sandbox & { folder: string }> {
  sandbox.env.PATH = `${join(sandbox.home, 'tools')}:${sandbox.env.PATH}`
  if (preparedCopy) cpSync(preparedCopy, sandbox.home, { recursive: true })
  else {
    await prepareSandbox(sandbox)
    const copy = createPreparedFolder()
    cpSync(sandbox.home, copy, { recursive: true })
    preparedCopy = copy
  }
  return { ...sandbox, folder: join(sandbox.home, 'work') }
}

/** Copy of the first prepared sandbox of this process. */
let preparedCopy: string | undefined

async function prepareSandbox(sandbox: Sandbox): Promise<void> {
  const tools = join(sandbox.home, 'tools')
  const folder = join(sandbox.home, 'work')
  mkdirSync(tools)
  for (const [name, text] of [
    ['wb', wbScript],
    ['npx', npxScript],
    ...(hasProgram('jq') ? [] : [['jq', jqScript] as const]),
  ] as const) {
    writeFileSync(join(tools, name), text)
    chmodSync(join(tools, name), 0o755)
  }
  mkdirSync(join(folder, 'papers'), { recursive: true })
  for (const [name, text] of Object.entries(papers)) writeFileSync(join(folder, 'papers', name), text)
  mkdirSync(join(folder, 'docs/guide'), { recursive: true })
  writeFileSync(join(folder, 'docs/guide/keys.md'), '# Keys\n\nKeys are rotated by replacement.\n')
  for (const line of [
    ['quickstart', '-q'],
    ['kb', 'ingest', 'handbook', 'docs'],
    ['kb', 'ingest', 'papers', 'papers', '--create'],
  ]) {
    const { status, stderr } = await sandbox.wb(line, { cwd: folder })
    if (status !== 0) throw new Error(`wb ${line.join(' ')}: ${stderr}`)
  }
}

/** Ends the servers that a page started. */
export function endServers(home: string): void {
  let pids: string
  try {
    pids = readFileSync(join(home, 'pids'), 'utf8')
  } catch {
    return
  }
  for (const pid of pids.trim().split('\n')) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended by itself.
    }
  }
}
