/**
 * Measures `wb whoami` with a running server, alternating with `node -e 0`: with a key in the environment, and
 * with a login in a Secret Service (dbus-run-session and gnome-keyring-daemon).
 *
 * npm run bench:whoami
 */
import { spawnSync } from 'node:child_process'
import { compare, time } from './processes.ts'
import { remove, startServer, temporaryFolder, wb } from './server.ts'
import { table } from './statistics.ts'

const unlocked = 'printf bench | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec "$@"'

async function measure(): Promise<void> {
  const dataDir = temporaryFolder()
  const elsewhere = temporaryFolder()
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject' }
  const server = await startServer(dataDir, { config: { auth } })
  try {
    const config = ['--config', `${dataDir}/bench.yaml`]
    const made = wb(dataDir, 'keys', 'create', 'bench', '--as-operator', ...config)
    const key = spawnSync(made.command, made.args, { env: made.env, encoding: 'utf8' }).stdout.trim()
    const login = wb(elsewhere, 'login', server.url, '--with-token')
    const { status, stderr } = spawnSync(login.command, login.args, {
      env: login.env,
      input: key,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(stderr)
    const whoami = wb(elsewhere, 'whoami', '--url', server.url)
    const byKey = { ...whoami, env: { ...wb(dataDir).env, WB_API_KEY: key } }
    time(whoami)
    const rows = compare({ 'wb whoami, WB_API_KEY': byKey, 'wb whoami, login in a keychain': whoami })
    console.log(table(['command', 'median ms', 'ratio to node -e 0'], rows))
  } finally {
    await server.stop()
    remove(dataDir)
    remove(elsewhere)
  }
}

if (process.argv.includes('--in-session')) await measure()
else {
  const again = [process.execPath, ...process.execArgv, process.argv[1]!, '--in-session']
  const line = ['--', 'sh', '-c', unlocked, 'sh', ...again]
  process.exitCode = spawnSync('dbus-run-session', line, { stdio: 'inherit' }).status ?? 1
}
