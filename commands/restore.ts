import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import { printRestored } from '../src/cli/backup/print-backup.ts'
import { requireThisMachine } from '../src/cli/backup/require-this-machine.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { yesFlag } from '../src/cli/command/flags.ts'
import { UsageError } from '../src/cli/errors.ts'
import { restoreDataDir } from '../src/cli/local.ts'

export default class Restore extends WbCommand {
  static override summary = 'restore the data directory from a backup'
  static override description =
    'Checks the whole backup first, and changes nothing if it is damaged. Moves the current files of the data directory to a folder in it, and deletes nothing. Stop wb serve first. Restore only backups that you trust: workbase.yaml can start programs, and the API keys of the backup become valid again.'
  static override examples = [
    'wb restore workbase.tar.gz',
    'wb restore workbase.tar.gz --data-dir ./restored',
    'wb restore workbase.tar.gz --yes',
  ]
  static override args = { file: Args.string({ required: true, description: 'backup that wb backup wrote' }) }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(Restore)
    const { profile, io, signal, output } = this
    requireThisMachine(profile, 'a restore')
    this.requireTrustedFolder()
    if (!existsSync(resolve(io.cwd, args.file))) throw new UsageError(`${args.file} not found`)
    const { dataDir } = profile
    const restored = await this.waitFor(
      'restoring',
      restoreDataDir(profile, io, {
        path: resolve(io.cwd, args.file),
        clock: io.clock,
        signal,
        confirm: async ({ createdAt }) => {
          this.progress.end()
          const effect = `replaces everything in ${dataDir} with the backup of ${createdAt}`
          await this.confirm({ effect, ifDeclined: 'nothing was changed' }, 'restore', flags.yes)
        },
      }),
    )
    printRestored(output, dataDir, restored)
  }
}
