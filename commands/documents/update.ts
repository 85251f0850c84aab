import * as Flags from '@oclif/core/flags'
import { aDocument } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existing } from '../../src/cli/command/existing.ts'
import { keyValues } from '../../src/cli/command/flags.ts'
import { findDocument, kbFlag } from '../../src/cli/find/document.ts'
import { documentName } from '../../src/cli/shown/resources.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { documents } from '../../src/contract/documents.ts'

export default class DocumentsUpdate extends WbCommand {
  static override summary = 'change the metadata of a document, or for whom it is meant'
  static override description =
    'The chunks of the document change with it. For whom it is meant is kept, and hides nothing yet.'
  static override examples = [
    'wb documents update guide/keys.md --set team=platform --unset draft',
    'wb documents update guide/keys.md --visible-to ann --visible-to bob',
    'wb documents update guide/keys.md --visible-to "*"',
  ]
  static override args = {
    document: existing(aDocument, 'id, file name or source id'),
  }
  static override flags = {
    kb: kbFlag,
    set: Flags.string({ multiple: true, summary: 'a field of its metadata', helpValue: 'NAME=TEXT' }),
    unset: Flags.string({ multiple: true, summary: 'a field to take out', helpValue: 'NAME' }),
    'visible-to': Flags.string({
      multiple: true,
      exclusive: ['admins-only'],
      summary: 'all principals that it is meant for, or * for everyone',
      helpValue: 'ID',
    }),
    'admins-only': Flags.boolean({ summary: 'mean it for admins alone' }),
  }

  async run() {
    const { args, flags } = await this.parse(DocumentsUpdate)
    const visibleTo = flags['admins-only'] ? null : flags['visible-to']
    this.requireChange([flags.set, flags.unset, visibleTo])
    const given = keyValues(flags.set ?? [], '--set')
    const before = await this.waitFor('looking', findDocument(this.resolving, args.document, flags.kb))
    const { workspaceId, knowledgeBaseId, documentId } = before
    const fields = Object.entries({ ...before.metadata, ...given })
    const metadata = Object.fromEntries(fields.filter(([name]) => !flags.unset?.includes(name)))
    const changed = await this.client.call(documents.update, {
      params: { workspaceId, knowledgeBaseId, documentId },
      body: { ...(flags.set || flags.unset ? { metadata } : {}), visibleTo },
    })
    this.output.made(changed, documentId, `changed document ${plainLine(documentName(changed))}`)
  }
}
