import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { findInTrash, listTrash, restoreEntries, selectLastDeletion } from '../../src/cli/documents/trash.ts'
import { CommandFailed } from '../../src/cli/errors.ts'
import { documentName } from '../../src/cli/fields/resources.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { WbError } from '../../src/contract/errors.ts'
import type { TrashEntry } from '../../src/contract/trash.ts'

export default class DocumentsRestore extends WbCommand {
  static override summary = 'restore deleted documents'
  static override description = 'Without DOCUMENT, restores the documents that were deleted last.'
  static override examples = ['wb documents restore', 'wb documents restore guide/keys.md --kb handbook']
  static override usage = 'documents restore [DOCUMENT…]'
  static override strict = false
  static override args = {
    document: Args.string({ description: 'ID, file name or source ID; can be repeated [the last deletion]' }),
  }
  static override flags = { kb: kbFlag }

  protected override readonly finishesBackgroundWork = true

  async run() {
    const { flags, argv } = await this.parse(DocumentsRestore)
    const entries = await this.waitFor('loading', listTrash(this.resolveContext, flags.kb))
    const selected = selectEntries(entries, argv as string[])
    const { changed, failed } = await this.waitFor('restoring', restoreEntries(this.client, selected))
    if (this.output.json) this.output.value({ restored: changed, failed })
    else if (changed.length === 1)
      this.output.note(`  ✓ restored document ${plainLine(documentName(changed[0]!))}`)
    else if (changed.length > 0) this.output.note(`  ✓ restored ${formatCounted(changed.length, 'document')}`)
    if (failed.length === 0) return
    const lines = failed.map(({ code, message }) => `${plainLine(message)} (${code})`)
    const total = formatCounted(selected.length, 'document')
    throw new CommandFailed(`${failed.length} of ${total} were not restored`, lines)
  }
}

/** @throws document_not_found  a document is not in the trash, or the trash is empty */
function selectEntries(entries: readonly TrashEntry[], names: readonly string[]): TrashEntry[] {
  const next = ['wb documents list --deleted']
  if (names.length === 0) {
    const last = selectLastDeletion(entries)
    if (last.length === 0)
      throw new WbError('document_not_found', 'no deleted document can be restored', { next })
    return last
  }
  return [...new Set(names)].map(name => {
    const entry = findInTrash(entries, name)
    if (!entry) throw new WbError('document_not_found', `no deleted document "${name}"`, { next })
    return entry
  })
}
