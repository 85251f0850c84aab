import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../src/base/shell-word.ts'
import { printBackup } from '../src/cli/backup/print-backup.ts'
import { requireThisMachine } from '../src/cli/backup/require-this-machine.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { UsageError } from '../src/cli/errors.ts'
import { backUpDataDir, readConfig } from '../src/cli/local.ts'

export default class Backup extends WbCommand {
  static override summary = 'back up the data directory to a file'
  static override description =
    'Writes one file with the store, workbase.yaml, provider keys, secrets and added models. The server and other commands can run in the meantime. The backup is a snapshot: it contains every change that was confirmed before. The command verifies it before it replaces an earlier file. The file is a compressed tar archive that only you can read.'
  static override examples = ['wb backup workbase.tar.gz', 'wb backup workbase.tar.gz --force']
  static override args = { file: Args.string({ required: true, description: 'file to write' }) }
  static override flags = { force: Flags.boolean({ summary: 'replace FILE if it exists' }) }

  async run() {
    const { args, flags } = await this.parse(Backup)
    const { profile, io, signal, output } = this
    requireThisMachine(profile, 'a backup')
    this.requireTrustedFolder()
    const path = resolve(io.cwd, args.file)
    if (existsSync(path) && !flags.force)
      throw new UsageError(`${args.file} exists`, [
        `${this.commandName} ${shellWord(args.file)} --force    replaces it`,
      ])
    const config = await readConfig(profile, io)
    const backup = await this.waitFor(
      'backing up',
      backUpDataDir(profile, config, { path, clock: io.clock, signal }),
    )
    printBackup(output, profile, config, backup)
  }
}
