import * as Flags from '@oclif/core/flags'
import { documentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { parseKeyValues } from '../../src/cli/command/flags.ts'
import { documentName } from '../../src/cli/fields/resources.ts'
import { findDocument, kbFlag } from '../../src/cli/find/document.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { documents } from '../../src/contract/documents.ts'

export default class DocumentsUpdate extends WbCommand {
  static override summary = 'change the metadata or visibility of a document'
  static override description =
    'Also updates the chunks of the document. The visibility takes effect if row-level access is on.'
  static override examples = [
    'wb documents update guide/keys.md --set team=platform --unset draft',
    'wb documents update guide/keys.md --visible-to ann --visible-to bob',
    'wb documents update guide/keys.md --visible-to "*"',
  ]
  static override args = {
    document: existingArg(documentChoices, 'ID, file name or source ID'),
  }
  static override flags = {
    kb: kbFlag,
    set: Flags.string({
      multiple: true,
      summary: 'set a metadata field; can be repeated',
      helpValue: 'NAME=TEXT',
    }),
    unset: Flags.string({
      multiple: true,
      summary: 'remove a metadata field; can be repeated',
      helpValue: 'NAME',
    }),
    'visible-to': Flags.string({
      multiple: true,
      exclusive: ['admins-only'],
      summary:
        'ID of a principal who can see the document, or * for everyone; replaces the list; can be repeated',
      helpValue: 'ID',
    }),
    'admins-only': Flags.boolean({ summary: 'show the document to administrators only' }),
  }

  async run() {
    const { args, flags } = await this.parse(DocumentsUpdate)
    const visibleTo = flags['admins-only'] ? null : flags['visible-to']
    this.requireChange([flags.set, flags.unset, visibleTo])
    const newValues = parseKeyValues(flags.set ?? [], '--set')
    const current = await this.waitFor('loading', findDocument(this.resolveContext, args.document, flags.kb))
    const { workspaceId, knowledgeBaseId, documentId } = current
    const fields = Object.entries({ ...current.metadata, ...newValues })
    const metadata = Object.fromEntries(fields.filter(([name]) => !flags.unset?.includes(name)))
    const changed = await this.client.call(documents.update, {
      params: { workspaceId, knowledgeBaseId, documentId },
      body: { ...(flags.set || flags.unset ? { metadata } : {}), visibleTo },
    })
    this.output.reportSaved(changed, documentId, `updated document ${plainLine(documentName(changed))}`)
  }
}
