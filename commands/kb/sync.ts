import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { SyncCommand } from '../../src/cli/sync/sync-command.ts'

export default class KbSync extends SyncCommand {
  static override summary = 'sync a knowledge base with a folder'
  static override description =
    'Adds, replaces and renames the documents of a folder, so that they match its files. Asks before it deletes documents whose files are gone. Documents from elsewhere are not changed.'
  static override examples = [
    'wb kb sync handbook ./docs --create',
    'wb kb sync handbook ./docs --dry-run',
    'wb kb sync handbook ./docs --watch --delete',
  ]
  static override args = {
    name: existingArg(knowledgeBaseChoices, 'knowledge base name or ID', { mayBeNew: true }),
    folder: { ...Args.string({ required: true, description: 'folder' }), pathQuestion: 'Which folder?' },
  }
  static override flags = {
    create: Flags.boolean({ summary: 'create the knowledge base if it does not exist' }),
    'dry-run': Flags.boolean({ summary: 'show what would change, and change nothing' }),
    delete: Flags.boolean({ summary: 'delete documents whose files are gone, without asking' }),
    watch: Flags.boolean({ summary: 'sync again when files change, until Ctrl-C' }),
    adopt: Flags.boolean({
      summary: 'take over documents with the same names that you ingested without sync',
    }),
    as: Flags.string({
      summary: 'ID of the folder, to sync it from several machines [its name and a hash of its path]',
      helpValue: 'ID',
    }),
    yes: yesFlag,
  }

  async run() {
    const { args, flags } = await this.parse(KbSync)
    const destination = { name: args.name, find: (name: string) => this.knowledgeBase(name) }
    await this.sync(destination, args.folder, flags)
  }
}
