import { isDelimitedText } from '../../base/delimited-text.ts'
import type { TextLayout } from '../../base/text-layout.ts'
import type { Ingest } from '../../contract/documents.ts'
import type { DocumentIngestReport } from '../../contract/ingest-report.ts'
import { isCodeFile } from '../chunk/code-breaks.ts'
import { hasSections } from '../chunk/sections.ts'

/** A text to ingest. If it was extracted from a file, it has a layout. */
export interface StructuredIngest extends Ingest {
  readonly layout?: TextLayout | undefined
  /** How the text was extracted; absent if the client sent text. */
  readonly extraction?: Pick<DocumentIngestReport, 'parser' | 'stages'>
}

/** Returns the layout of a text; without one, that of its media type and file name. */
export function layoutOf({
  layout,
  fileType,
  sourceFilename,
}: Pick<StructuredIngest, 'layout' | 'fileType' | 'sourceFilename'>): TextLayout {
  const known = layout ?? { isMarkdown: hasSections(fileType, sourceFilename), places: [] }
  return {
    ...known,
    isCode: !known.isMarkdown && isCodeFile(sourceFilename),
    isDelimited: !known.isMarkdown && isDelimitedText(fileType, sourceFilename),
  }
}
