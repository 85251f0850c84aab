/**
 * Quotes any string as one word for bash, zsh and the POSIX shell.
 *
 * @see https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_02_02
 */
export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Quotes a word for a shell, if necessary. */
export function shellWord(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `"${word.replace(/["\\$`]/g, '\\$&')}"`
}
