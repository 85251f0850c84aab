/** Returns true for CSV and TSV text, by its media type or its file name. */
export function isDelimitedText(fileType: string | null, fileName: string | null): boolean {
  return (
    /^text\/(?:csv|tab-separated-values)\b/.test(fileType ?? '') || /\.(?:csv|tsv)$/i.test(fileName ?? '')
  )
}
