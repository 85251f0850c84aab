import { documentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { readDocumentChunks, skipToChunk } from '../../src/cli/documents/chunks.ts'
import { documentName } from '../../src/cli/fields/resources.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { findCitedDocument } from '../../src/cli/passages/last-search.ts'
import { plain } from '../../src/cli/terminal/terminal-text.ts'
import { wrapLine } from '../../src/cli/terminal/wrap.ts'

const indent = '     '

export default class DocumentsChunks extends WbCommand {
  static override summary = 'show the chunks of a document'
  static override description =
    'If DOCUMENT is a passage number from the last search, the list starts at that passage. Otherwise, it contains all chunks.'
  static override examples = ['wb documents chunks 1', 'wb documents chunks guide/keys.md --json | jq length']
  static override args = {
    document: existingArg(
      documentChoices,
      'ID, file name, source ID, or passage number from the last search',
    ),
  }
  static override flags = { kb: kbFlag, limit: limitFlag }

  async run() {
    const { args, flags } = await this.parse(DocumentsChunks)
    const { document, passage } = await this.waitFor(
      'loading',
      findCitedDocument(this.resolveContext, args.document, flags.kb),
    )
    const chunks = readDocumentChunks(this.client, document)
    const { rows, total } = await this.takeRows(
      passage ? skipToChunk(chunks, passage.chunkIndex) : chunks,
      flags.limit,
    )
    const { output } = this
    if (output.interactive && rows.length > 0) {
      for (const { chunkIndex, text } of rows) {
        const cited = passage && chunkIndex === passage.chunkIndex ? ` [${passage.number}]` : ''
        output.result(`  ${output.style.strong(String(chunkIndex))}${output.style.good(cited)}`)
        for (const line of plain(text ?? '').split('\n'))
          for (const part of wrapLine(indent + line, output.width, indent.length))
            output.result(part.trimEnd())
        output.result('')
      }
      if (total) output.note(`  ${rows.length} of ${total}`)
      if (passage && rows[0]!.chunkIndex) output.suggest(`wb documents chunks ${document.documentId}`)
      return
    }
    output.list(rows, {
      columns: { id: { value: row => row.id }, text: { value: row => row.text, format: 'flexible' } },
      empty: [`${documentName(document)} has no chunks (status ${document.status})`],
      total,
    })
  }
}
