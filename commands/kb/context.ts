import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { describeFolder } from '../../src/cli/reindex/describe-folder.ts'
import { folders } from '../../src/contract/folders.ts'

export default class KbContext extends WbCommand {
  static override summary = 'describe the files of a folder'
  static override description =
    'Stores what the files below a folder are. The description is embedded with their chunks, and agents see it with the passages that they find. PATH is the start of the names of the documents, as wb documents list prints them; . describes all files. Without PATH, lists the descriptions. Documents that were ingested before are embedded again: the command reindexes the knowledge base and waits for it.'
  static override examples = [
    'wb kb context handbook guides "setup guides for administrators"',
    'wb kb context handbook',
    'wb kb context handbook guides --remove',
  ]
  static override args = {
    name: existingArg(knowledgeBaseChoices, 'name or ID'),
    path: Args.string({ description: 'folder, such as guides/setup' }),
    text: Args.string({ description: 'what the files are' }),
  }
  static override flags = {
    remove: Flags.boolean({ summary: 'remove the description of the folder' }),
    async: Flags.boolean({
      summary: 'start the background job, and print its ID',
      exclusive: ['no-reindex'],
    }),
    'no-reindex': Flags.boolean({ summary: 'do not embed earlier documents again' }),
  }

  protected override readonly finishesBackgroundWork = true

  async run() {
    const { args, flags } = await this.parse(KbContext)
    const { path, text } = args
    if (flags.remove && (path === undefined || text !== undefined))
      throw new UsageError('--remove needs PATH, and no text')
    if (path !== undefined && text === undefined && !flags.remove)
      throw new UsageError('add a text that describes the files, or --remove')
    const base = await this.knowledgeBase(args.name)
    if (path !== undefined) {
      const { client, output, progress, signal } = this
      const reindex = flags['no-reindex'] ? 'later' : flags.async ? 'in background' : 'now'
      const options = { path, description: text ?? null, reindex } as const
      return describeFolder({ client, output, progress, signal, base }, options)
    }
    const params = { workspaceId: base.workspaceId, knowledgeBaseId: base.knowledgeBaseId }
    const { items } = await this.client.call(folders.list, { params })
    this.output.list(items, {
      columns: {
        path: { value: row => row.path || '.' },
        description: { value: row => row.description, format: 'flexible' },
      },
      empty: [
        `no described folders in ${base.name} yet; describe one:`,
        `  wb kb context ${base.name} guides "setup guides for administrators"`,
      ],
    })
  }
}
