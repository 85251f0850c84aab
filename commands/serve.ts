import { once } from 'node:events'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { openPage, pages } from '../src/cli/connection/browser.ts'
import { UsageError } from '../src/cli/faults.ts'
import { serve } from '../src/cli/serve/serve.ts'
import { ServeTold } from '../src/cli/serve/told.ts'

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
    this.requireFolder()
    if (this.profile.url && flags.url)
      throw new UsageError('serve runs here, and takes no --url', ['wb serve --host ADDRESS'])
    if (this.profile.asOperator)
      throw new UsageError('serve answers every caller by the configuration, and takes no --as-operator')
    const { 'https-cert': cert, 'https-key': key } = flags
    const options = {
      host: flags.host,
      port: flags.port,
      https: cert && key ? { cert, key } : undefined,
      allowOpenAccess: flags['allow-open-access'],
    }
    const { dataDir, dataDirFrom } = this.profile
    const told = new ServeTold(this.output, this.io, {
      dataDir,
      isUsualPlace: ['platform', 'working directory'].includes(dataDirFrom),
      version: this.config.version,
      verbose: flags.verbose,
    })
    const serving = await serve(this.profile, this.io, options, told).catch(error => {
      told.release()
      throw error
    })
    await told.begun(serving)
    if (flags.open) await openPage(serving.url + pages.docs, this.io, this.output)
    if (!this.signal.aborted) await once(this.signal, 'abort')
    this.output.note('  ending: finishing what is in flight')
    await serving.stop()
  }
}
