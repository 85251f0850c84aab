import { documentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { deleteDocuments } from '../../src/cli/documents/delete-documents.ts'
import { CommandFailed } from '../../src/cli/errors.ts'
import { documentName } from '../../src/cli/fields/resources.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { findDocumentToDelete } from '../../src/cli/passages/last-search.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { type Document, documents } from '../../src/contract/documents.ts'

export default class DocumentsDelete extends WbCommand {
  static override summary = 'delete documents and their chunks'
  static override examples = [
    'wb documents delete guide/keys.md',
    'wb documents delete guide/keys.md guide/scopes.md --kb handbook --yes',
  ]
  static override usage = 'documents delete DOCUMENT…'
  static override strict = false
  static override args = {
    document: existingArg(documentChoices, 'ID, file name or source ID; can be repeated'),
  }
  static override flags = { kb: kbFlag, yes: yesFlag }

  async run() {
    const { flags, argv } = await this.parse(DocumentsDelete)
    const selectedDocuments: Document[] = []
    for (const name of new Set(argv as string[]))
      selectedDocuments.push(
        await this.waitFor('loading', findDocumentToDelete(this.resolveContext, name, flags.kb)),
      )
    if (selectedDocuments.length === 1) await this.deleteOne(selectedDocuments[0]!, flags.yes)
    else await this.deleteAll(selectedDocuments, flags.yes)
  }

  private async deleteOne(document: Document, yes: boolean) {
    const { workspaceId, knowledgeBaseId, documentId } = document
    const name = plainLine(documentName(document))
    const target = `document ${name} with ${formatCounted(document.chunkTotal ?? 0, 'chunk')}`
    await this.confirmDeletion(target, name, yes)
    await this.client.call(documents.delete, { params: { workspaceId, knowledgeBaseId, documentId } })
    this.output.reportDeleted(documentId, `deleted ${target}`)
  }

  private async deleteAll(selectedDocuments: readonly Document[], yes: boolean) {
    const chunks = selectedDocuments.reduce((sum, { chunkTotal }) => sum + (chunkTotal ?? 0), 0)
    const total = formatCounted(selectedDocuments.length, 'document')
    if (!yes)
      for (const document of selectedDocuments) this.output.note(`  ${plainLine(documentName(document))}`)
    await this.confirmDeletion(
      `${total} with ${formatCounted(chunks, 'chunk')}`,
      String(selectedDocuments.length),
      yes,
    )
    const outcome = await this.waitFor('deleting', deleteDocuments(this.client, selectedDocuments))
    if (this.output.json) this.output.value(outcome)
    else this.output.note(`  ✓ deleted ${formatCounted(outcome.deleted.length, 'document')}`)
    if (outcome.failed.length === 0) return
    const lines = outcome.failed.map(({ documentId, code, message }) => `${documentId}  ${message} (${code})`)
    throw new CommandFailed(`${outcome.failed.length} of ${total} were not deleted`, lines)
  }
}
