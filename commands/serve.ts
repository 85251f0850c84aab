import { once } from 'node:events'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { browserPages, openPage } from '../src/cli/connection/browser.ts'
import { UsageError } from '../src/cli/errors.ts'
import { ServeReporter } from '../src/cli/serve/reporter.ts'
import { serve } from '../src/cli/serve/serve.ts'

export default class Serve extends WbCommand {
  static override summary = 'start the Workbase server on this machine'
  static override examples = ['wb serve', 'wb serve --port 0 --json']
  static override flags = {
    host: Flags.string({ summary: 'address to listen on [127.0.0.1]' }),
    port: Flags.integer({
      char: 'p',
      min: 0,
      max: 65_535,
      summary: 'port to listen on; 0 chooses a free port [8787]',
    }),
    'https-cert': Flags.string({
      summary: 'TLS certificate (PEM)',
      helpValue: 'FILE',
      dependsOn: ['https-key'],
    }),
    'https-key': Flags.string({
      summary: 'private key of the certificate (PEM)',
      helpValue: 'FILE',
      dependsOn: ['https-cert'],
    }),
    open: Flags.boolean({ summary: 'open the API reference in a browser' }),
    verbose: Flags.boolean({ summary: 'print one line per request' }),
    'allow-open-access': Flags.boolean({ summary: 'allow other machines to connect without a credential' }),
  }

  async run() {
    const { flags } = await this.parse(Serve)
    this.requireTrustedFolder()
    if (this.profile.url && flags.url)
      throw new UsageError('wb serve runs on this machine and does not accept --url', [
        'wb serve --host ADDRESS',
      ])
    if (this.profile.asOperator)
      throw new UsageError(
        'wb serve authenticates callers by its configuration and does not accept --as-operator',
      )
    const { 'https-cert': cert, 'https-key': key } = flags
    const options = {
      host: flags.host,
      port: flags.port,
      https: cert && key ? { cert, key } : undefined,
      allowOpenAccess: flags['allow-open-access'],
    }
    const { dataDir, dataDirSource } = this.profile
    const reporter = new ServeReporter(this.output, this.io, {
      dataDir,
      isDefaultDataDir: ['platform', 'working directory'].includes(dataDirSource),
      version: this.config.version,
      verbose: flags.verbose,
    })
    const server = await serve(this.profile, this.io, options, reporter).catch(error => {
      reporter.release()
      throw error
    })
    await reporter.started(server)
    if (flags.open) await openPage(server.url + browserPages.docs, this.io, this.output)
    if (!this.signal.aborted) await once(this.signal, 'abort')
    this.output.note('  shutting down: waiting for requests in progress')
    await server.stop()
  }
}
