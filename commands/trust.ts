import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../src/base/shell-word.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { UsageError } from '../src/cli/errors.ts'
import { surveyFolder } from '../src/cli/local.ts'
import { createDecision, findDecision, storeDecision } from '../src/cli/trust/decisions.ts'
import { realFolder } from '../src/cli/trust/folder-files.ts'
import { listTrustDecisions } from '../src/cli/trust/list-trust-decisions.ts'
import { fileLines } from '../src/cli/trust/trust-lines.ts'

export default class Trust extends WbCommand {
  static override summary = 'trust the configuration files in a folder'
  static override description =
    'In a trusted folder, workbase.yaml, .workbase/ and the profile in .wb.yaml take effect. If their settings for addresses, access or programs change, you have to trust the folder again.'
  static override examples = ['wb trust', 'wb trust --list', 'wb trust --remove']
  static override args = {
    folder: Args.string({ ignoreStdin: true, description: 'folder to trust [the working directory]' }),
  }
  static override flags = {
    list: Flags.boolean({
      summary: 'list folders that you trusted or declined to trust',
      exclusive: ['remove'],
    }),
    remove: Flags.boolean({ summary: 'forget the decision about the folder' }),
  }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args, flags } = await this.parse(Trust)
    if (flags.list) return this.list()
    const folder = realFolder(resolve(this.io.cwd, args.folder ?? ''))
    if (flags.remove) return this.remove(folder)
    const { files, fault } = await surveyFolder(folder)
    if (fault !== undefined) throw new UsageError(`${folder} cannot be trusted: ${fault}`)
    if (Object.keys(files).length === 0)
      throw new UsageError(`${folder} has no files that need trust`, [
        'only workbase.yaml, .workbase/ and a profile in .wb.yaml need it',
      ])
    for (const line of fileLines(files)) this.output.note(line)
    await storeDecision(this.profile.settingsDir, folder, createDecision(this.io.clock, true, files))
    if (this.output.json) return this.output.value({ folder, trusted: true, files: Object.keys(files) })
    this.output.note(`  ✓ trusted these files in ${folder}`)
  }

  private async list(): Promise<void> {
    const rows = await listTrustDecisions(this.profile.settingsDir)
    this.output.list(rows, {
      columns: {
        folder: { value: row => row.folder, format: 'flexible' },
        state: { value: row => row.state, tone: row => (row.state === 'changed' ? 'bad' : undefined) },
        files: { value: row => row.files.join(' '), format: 'flexible' },
        since: { value: row => row.decidedAt, format: 'time' },
      },
      empty: ['no decisions about folders yet', '  wb trust'],
    })
  }

  private async remove(folder: string): Promise<void> {
    const { settingsDir } = this.profile
    if (!findDecision(settingsDir, folder))
      throw new UsageError(`there is no decision about ${folder}`, ['wb trust --list'])
    await storeDecision(settingsDir, folder, undefined)
    if (this.output.json) this.output.value({ folder, trusted: false })
    else
      this.output.note(
        `  ✓ removed the decision about ${folder}\n  wb trust ${shellWord(folder)}    trusts it again`,
      )
  }
}
