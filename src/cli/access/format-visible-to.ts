import type { ToolDocument } from '../../contract/access-tools.ts'

/** Returns who can see a document, as one text; undefined if the document has no list. */
export function formatVisibleTo({ visibleTo, visibleToTotal }: ToolDocument): string | undefined {
  const omitted = (visibleToTotal ?? 0) - (visibleTo?.length ?? 0)
  return visibleTo?.concat(omitted > 0 ? `and ${omitted} more` : []).join(', ')
}
