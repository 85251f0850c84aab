import * as Flags from '@oclif/core/flags'
import { documentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import {
  type DeletionFlags,
  type DeletionTargets,
  deleteTargets,
  findDeletionTargets,
  suggestRestore,
} from '../../src/cli/documents/delete-documents.ts'
import { CommandFailed } from '../../src/cli/errors.ts'
import { documentName } from '../../src/cli/fields/resources.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { type Document, documents } from '../../src/contract/documents.ts'

export default class DocumentsDelete extends WbCommand {
  static override summary = 'delete documents and their chunks'
  static override description =
    'By default, you can restore a deleted document for 24 hours. With --permanently, you cannot.'
  static override examples = [
    'wb documents delete guide/keys.md',
    'wb documents delete guide/keys.md guide/scopes.md --kb handbook --yes',
    'wb documents delete guide/keys.md --permanently',
  ]
  static override usage = 'documents delete DOCUMENT…'
  static override strict = false
  static override args = {
    document: existingArg(documentChoices, 'ID, file name or source ID; can be repeated'),
  }
  static override flags = {
    kb: kbFlag,
    permanently: Flags.boolean({ summary: 'skip the trash, and also delete documents that are in it' }),
    yes: yesFlag,
  }

  async run() {
    const { flags, argv } = await this.parse(DocumentsDelete)
    const found = findDeletionTargets(this.resolveContext, argv as string[], flags)
    const targets = await this.waitFor('loading', found)
    const [only] = targets.live
    if (only && targets.live.length + targets.entries.length === 1) await this.deleteOne(only, flags)
    else await this.deleteAll(targets, flags)
  }

  private async deleteOne(document: Document, { permanently, yes, kb }: DeletionFlags) {
    const { workspaceId, knowledgeBaseId, documentId } = document
    const name = plainLine(documentName(document))
    const target = `document ${name} with ${formatCounted(document.chunkTotal ?? 0, 'chunk')}`
    await this.confirmDeletion(target, name, yes)
    const params = { workspaceId, knowledgeBaseId, documentId }
    await this.client.call(documents.delete, { params, query: permanently ? { permanently: 'true' } : {} })
    this.output.reportDeleted(documentId, `deleted ${target}`)
    suggestRestore(this.output, { permanently, kb })
  }

  private async deleteAll(targets: DeletionTargets, flags: DeletionFlags) {
    const all = [...targets.live, ...targets.entries.map(({ document }) => document)]
    const chunks = all.reduce((sum, { chunkTotal }) => sum + (chunkTotal ?? 0), 0)
    const total = formatCounted(all.length, 'document')
    if (!flags.yes) for (const document of all) this.output.note(`  ${plainLine(documentName(document))}`)
    const effect = `${total} with ${formatCounted(chunks, 'chunk')}`
    await this.confirmDeletion(effect, String(all.length), flags.yes)
    const outcome = await this.waitFor('deleting', deleteTargets(this.client, targets, flags))
    if (this.output.json) this.output.value(outcome)
    else this.output.note(`  ✓ deleted ${formatCounted(outcome.deleted.length, 'document')}`)
    if (targets.live.length > 0) suggestRestore(this.output, flags)
    if (outcome.failed.length === 0) return
    const lines = outcome.failed.map(({ documentId, code, message }) => `${documentId}  ${message} (${code})`)
    throw new CommandFailed(`${outcome.failed.length} of ${total} were not deleted`, lines)
  }
}
