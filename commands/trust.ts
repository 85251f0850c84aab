import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../src/base/shell-word.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { UsageError } from '../src/cli/faults.ts'
import { decidedFolders } from '../src/cli/folder/decided.ts'
import { realFolder } from '../src/cli/folder/here.ts'
import { fileLines } from '../src/cli/folder/shown.ts'
import { decide, decisionNow, decisionOn } from '../src/cli/folder/trusted.ts'
import { surveyFolder } from '../src/cli/local.ts'

export default class Trust extends WbCommand {
  static override summary = "let this folder's files count"
  static override description =
    'workbase.yaml, .workbase/ and the profile in .wb.yaml count in a folder that is trusted, until what they say of addresses, access and programs changes.'
  static override examples = ['wb trust', 'wb trust --list', 'wb trust --remove']
  static override args = {
    folder: Args.string({ ignoreStdin: true, description: 'which one [the working directory]' }),
  }
  static override flags = {
    list: Flags.boolean({ summary: 'list folders that were decided on', exclusive: ['remove'] }),
    remove: Flags.boolean({ summary: 'forget what was said of the folder' }),
  }
  protected override readonly mindsFolder = false

  async run() {
    const { args, flags } = await this.parse(Trust)
    if (flags.list) return this.list()
    const folder = realFolder(resolve(this.io.cwd, args.folder ?? ''))
    if (flags.remove) return this.remove(folder)
    const { files, fault } = await surveyFolder(folder)
    if (fault !== undefined) throw new UsageError(`${folder} cannot be trusted: ${fault}`)
    if (Object.keys(files).length === 0)
      throw new UsageError(`nothing in ${folder} needs trust`, [
        'workbase.yaml, .workbase/ and a profile in .wb.yaml do',
      ])
    for (const line of fileLines(files)) this.output.note(line)
    await decide(this.profile.settingsDir, folder, decisionNow(this.io.clock, true, files))
    if (this.output.json) return this.output.value({ folder, trusted: true, files: Object.keys(files) })
    this.output.note(`  ✓ these files of ${folder} count from now on`)
  }

  private async list(): Promise<void> {
    const rows = await decidedFolders(this.profile.settingsDir)
    this.output.list(rows, {
      columns: {
        folder: { of: row => row.folder, as: 'free' },
        state: { of: row => row.state, isBad: row => row.state === 'changed' },
        files: { of: row => row.files.join(' '), as: 'free' },
        since: { of: row => row.decidedAt, as: 'time' },
      },
      empty: ['  no folder was decided on', '  wb trust'],
    })
  }

  private async remove(folder: string): Promise<void> {
    const { settingsDir } = this.profile
    if (!decisionOn(settingsDir, folder))
      throw new UsageError(`nothing is known of ${folder}`, ['wb trust --list'])
    await decide(settingsDir, folder, undefined)
    if (this.output.json) this.output.value({ folder, trusted: false })
    else
      this.output.note(
        `  ✓ the files of ${folder} do not count any more\n  wb trust ${shellWord(folder)}    has them count again`,
      )
  }
}
