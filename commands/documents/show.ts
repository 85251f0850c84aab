import * as Flags from '@oclif/core/flags'
import { documentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { documentViewJson, readDocumentView } from '../../src/cli/documents/document-view.ts'
import { documentFields, documentName } from '../../src/cli/fields/resources.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { readIngestedFolders } from '../../src/cli/ingest/ingested-folders.ts'
import { type CitedDocument, findCitedDocument } from '../../src/cli/passages/last-search.ts'
import { plain } from '../../src/cli/terminal/terminal-text.ts'

export default class DocumentsShow extends WbCommand {
  static override summary = 'show a passage in context, or a document'
  static override description =
    'If DOCUMENT is a passage number from the last search, shows that passage in its section. Otherwise, shows the fields of the document. In a pipe, the passage is plain text.'
  static override examples = [
    'wb documents show 2',
    'wb documents show 2 --full',
    'wb documents show guide/keys.md --kb handbook --json',
  ]
  static override args = {
    document: existingArg(
      documentChoices,
      'ID, file name, source ID, or passage number from the last search',
    ),
  }
  static override flags = { kb: kbFlag, full: Flags.boolean({ summary: 'show the whole document' }) }

  async run() {
    const { args, flags } = await this.parse(DocumentsShow)
    const { output, client } = this
    const cited = await this.waitFor(
      'loading',
      findCitedDocument(this.resolveContext, args.document, flags.kb),
    )
    const view = await this.waitFor('reading', readDocumentView(client, cited, flags.full))
    const { part, text } = view
    if (output.json) output.value(documentViewJson(view))
    else if (!part) this.printFields(cited)
    else if (text === '')
      output.note(`  ${documentName(cited.document)} has no text (status ${cited.document.status})`)
    else if (output.interactive) {
      const { showDocument } = await import('../../src/tui/document/show-document.ts')
      await showDocument({ view, part, folders: readIngestedFolders(this.profile)(cited.document) }, output)
    } else output.result(plain(text.slice(part.start, part.end)))
  }

  private printFields({ document, passage }: CitedDocument) {
    if (passage)
      this.output.warn('  the chunk of this passage was deleted or cannot be listed; showing its document')
    this.output.fields(document, documentFields(document))
    this.output.suggest(`wb documents show ${document.documentId} --full`)
  }
}
