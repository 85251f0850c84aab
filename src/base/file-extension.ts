/** Returns the extension of a file name in lowercase, without the dot; empty for names such as `LICENSE` and `.env`. */
export function extensionOf(name: string): string {
  return /[^/\\]\.([^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
}
