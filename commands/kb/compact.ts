import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { compactBase, printCompaction } from '../../src/cli/fields/compaction.ts'

export default class KbCompact extends WbCommand {
  static override summary = 'remove deleted chunks from the index, and free disk space'
  static override description =
    'Rewrites the lexical index without deleted chunks, and returns free space of the database file to the disk. Searches and writes continue in the meantime. A server does this by itself after many deletions. If the command is interrupted, run it again to continue.'
  static override examples = [
    'wb kb compact handbook',
    'wb kb compact handbook --json | jq .after.file.bytes',
  ]
  static override args = { name: existingArg(knowledgeBaseChoices, 'name or ID') }

  async run() {
    const { args } = await this.parse(KbCompact)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.name)
    const params = { workspaceId, knowledgeBaseId }
    const compaction = await compactBase(this.client, params, this.progress)
    printCompaction(this.output, name, compaction)
  }
}
