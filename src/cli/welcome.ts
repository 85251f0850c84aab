import { isLoopback } from '../base/loopback.ts'
import { counted } from './output.ts'
import type { Serving } from './serve.ts'
import type { Style } from './style.ts'

/** A server that has begun, and what it says of itself. */
export interface Begun extends Pick<Serving, 'url' | 'config' | 'runtime'> {
  dataDir: string
  version: string
}

/** The line that a program waits for. */
export function readyLine({ url, dataDir }: Begun): string {
  return JSON.stringify({ event: 'ready', url, pid: process.pid, dataDir })
}

/** The block that a person reads: where it answers, what lies where, who may call, and what to type next. */
export async function welcome(
  { url, config, runtime, dataDir, version }: Begun,
  style: Style,
): Promise<string> {
  const ready = await runtime.fetch(new Request('http://localhost/readyz'))
  const { workspaces } = (await ready.json()) as { workspaces: number }
  const next = workspaces === 0 ? 'wb quickstart' : 'wb kb search "…"'
  return [
    `  ${style.strong('Workbase')} ${version}  ${style.strong(url)}`,
    `  ${style.dim('data')}       ${dataDir} · ${counted(workspaces, 'workspace')}`,
    `  ${style.dim('callers')}    ${callers(url, config)}`,
    `  ${style.dim('reference')}  ${url}/docs`,
    `  ${style.dim('ctrl-c')}     ends it`,
    '',
    `  ${next}    in another terminal`,
  ].join('\n')
}

function callers(url: string, { config }: Begun['config']): string {
  const { mode, anonymousPolicy } = config.auth
  if (mode !== 'disabled' && anonymousPolicy === 'reject') return 'with a credential'
  return isLoopback(new URL(url).hostname) ? 'anyone on this machine' : 'anyone who reaches this address'
}
