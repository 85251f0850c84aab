import { once } from 'node:events'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command.ts'
import { UsageError } from '../src/cli/faults.ts'
import type { LocalConfig, Voice } from '../src/cli/local.ts'
import { counted } from '../src/cli/output.ts'
import { isLoopback } from '../src/cli/profile.ts'
import { type Serving, serve } from '../src/cli/serve.ts'

export default class Serve extends WbCommand {
  static override summary = 'run the runtime here, for this and other programs'
  static override examples = ['wb serve', 'wb serve --port 0 --json']
  static override flags = {
    host: Flags.string({ summary: 'address to listen on [127.0.0.1]' }),
    port: Flags.integer({
      char: 'p',
      min: 0,
      max: 65_535,
      summary: 'port to listen on; 0 is a free one [8787]',
    }),
    'https-cert': Flags.string({ summary: 'certificate (PEM)', helpValue: 'FILE', dependsOn: ['https-key'] }),
    'https-key': Flags.string({ summary: 'its key (PEM)', helpValue: 'FILE', dependsOn: ['https-cert'] }),
    open: Flags.boolean({ summary: 'open the reference in a browser' }),
    verbose: Flags.boolean({ summary: 'print a line per request' }),
    'allow-open-access': Flags.boolean({ summary: 'let other machines in without a credential' }),
  }

  async run() {
    const { flags } = await this.parse(Serve)
    if (this.profile.url && flags.url)
      throw new UsageError('serve runs here, and takes no --url', ['wb serve --host ADDRESS'])
    const { 'https-cert': cert, 'https-key': key } = flags
    const options = {
      host: flags.host,
      port: flags.port,
      https: cert && key ? { cert, key } : undefined,
      allowOpenAccess: flags['allow-open-access'],
    }
    const serving = await serve(this.profile, options, config => this.voice(config, flags.verbose))
    if (this.output.json) this.output.result(this.ready(serving))
    else await this.describe(serving)
    if (flags.open) (await import('open')).default(`${serving.url}/docs`)
    if (!this.signal.aborted) await once(this.signal, 'abort')
    this.output.note('  ending: finishing what is in flight')
    await serving.stop()
  }

  /** The line that a program waits for. */
  private ready({ url }: Serving): string {
    return JSON.stringify({ event: 'ready', url, pid: process.pid, dataDir: this.profile.dataDir })
  }

  private voice({ config }: LocalConfig, verbose: boolean): Voice {
    const { logLevel } = config.runtime
    if (this.output.json) return { level: logLevel, stream: process.stdout }
    return { level: verbose ? 'info' : 'warn', stream: process.stderr }
  }

  private async describe({ url, config, runtime }: Serving) {
    const { workspaces } = (await (await runtime.fetch(new Request('http://localhost/readyz'))).json()) as {
      workspaces: number
    }
    const { mode, anonymousPolicy } = config.config.auth
    const open = mode === 'disabled' || anonymousPolicy === 'allow'
    const where = isLoopback(new URL(url).hostname)
      ? 'anyone on this machine'
      : 'anyone who reaches this address'
    const { strong, dim } = this.output.style
    this.output.result(
      [
        `  ${strong('Workbase')} ${this.config.version}  ${strong(url)}`,
        `  ${dim('data')}       ${this.profile.dataDir} · ${counted(workspaces, 'workspace')}`,
        `  ${dim('callers')}    ${open ? where : 'with a credential'}`,
        `  ${dim('reference')}  ${url}/docs`,
        `  ${dim('ctrl-c')}     ends it`,
        '',
        `  ${workspaces === 0 ? 'wb quickstart' : 'wb kb search "…"'}    in another terminal`,
      ].join('\n'),
    )
    for (const warning of config.warnings) this.output.warn(`  ! ${warning}`)
  }
}
