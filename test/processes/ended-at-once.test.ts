import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../src/client/client.ts'
import { agents } from '../../src/contract/agents.ts'
import { place } from '../commands/wb.ts'
import { isAlive } from '../harness/alive.ts'
import { makeWorkspace } from '../harness/place.ts'

const program = resolve('test/fixtures/mcp/stdio-server.mjs')

test.runIf(process.platform !== 'win32')(
  'a second Ctrl-C ends the tool servers that the first one is waiting for',
  async () => {
    const here = place()
    const started = join(here.dataDir, 'started')
    const run = `echo $$ >"$1"; exec "${process.execPath}" "${program}" stubborn`
    const local = { id: 'local', command: 'sh', args: ['-c', run, 'sh', started] }
    mkdirSync(here.dataDir, { recursive: true })
    writeFileSync(
      join(here.dataDir, 'workbase.yaml'),
      JSON.stringify({ version: 1, mcp: { stdioServers: [local] } }),
    )
    const server = await here.serve()
    const client = connect({ baseUrl: server.url, fetch })
    const { workspaceId } = await makeWorkspace(client)
    await client.call(agents.tools, { params: { workspaceId } })
    const pid = Number(readFileSync(started, 'utf8'))
    onTestFinished(() => void (isAlive(pid) && process.kill(pid, 'SIGKILL')))
    server.process.kill('SIGINT')
    await vi.waitFor(async () => {
      server.process.kill('SIGINT')
      expect(server.process.signalCode ?? server.process.exitCode).not.toBeNull()
    })
    await server.ended
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false))
  },
)
