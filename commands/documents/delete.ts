import * as Args from '@oclif/core/args'
import { WbCommand, yesFlag } from '../../src/cli/command.ts'
import { findDocument, kbFlag } from '../../src/cli/find-document.ts'
import { counted } from '../../src/cli/output.ts'
import { documentName } from '../../src/cli/shown.ts'
import { plainLine } from '../../src/cli/terminal-text.ts'
import { documents } from '../../src/contract/documents.ts'

export default class DocumentsDelete extends WbCommand {
  static override summary = 'delete a document and its chunks'
  static override examples = [
    'wb documents delete guide/keys.md',
    'wb documents delete guide/keys.md --kb handbook --yes',
  ]
  static override args = {
    document: Args.string({ required: true, description: 'id, file name or source id' }),
  }
  static override flags = { kb: kbFlag, yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(DocumentsDelete)
    const document = await this.waitFor('looking', findDocument(this.resolving, args.document, flags.kb))
    const { workspaceId, knowledgeBaseId, documentId } = document
    const name = plainLine(documentName(document))
    const what = `document ${name} with ${counted(document.chunkTotal ?? 0, 'chunk')}`
    await this.confirmDeletion(what, name, flags.yes)
    await this.client.call(documents.delete, { params: { workspaceId, knowledgeBaseId, documentId } })
    if (this.output.json) this.output.value({ deleted: documentId })
    else this.output.note(`  ✓ deleted ${what}`)
  }
}
