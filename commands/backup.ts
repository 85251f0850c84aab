import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { printBackup } from '../src/cli/backup/print-backup.ts'
import { requireThisMachine } from '../src/cli/backup/require-this-machine.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { backUpDataDir, readConfig } from '../src/cli/local.ts'
import { resolveOutputFile } from '../src/cli/resolve-output-file.ts'

export default class Backup extends WbCommand {
  static override summary = 'back up the data directory to a file'
  static override description =
    'Writes one file with everything that is stored, workbase.yaml, provider keys, secrets and added models. The server and other commands can keep running. The backup is a snapshot: it contains every change that was confirmed before the command started. The command verifies the backup before it replaces or creates FILE. The file is a compressed tar archive that only you can read.'
  static override examples = ['wb backup workbase.tar.gz', 'wb backup workbase.tar.gz --force']
  static override args = { file: Args.string({ required: true, description: 'file to write' }) }
  static override flags = { force: Flags.boolean({ summary: 'replace FILE if it exists' }) }

  async run() {
    const { args, flags } = await this.parse(Backup)
    const { profile, io, signal, output } = this
    requireThisMachine(profile, 'a backup')
    this.requireTrustedFolder()
    const path = resolveOutputFile(io.cwd, args.file, { force: flags.force ?? false })
    const config = await readConfig(profile, io)
    const backup = await this.waitFor(
      'backing up',
      backUpDataDir(profile, config, { path, clock: io.clock, signal }),
    )
    printBackup(output, profile, config, backup)
  }
}
