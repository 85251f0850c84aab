/** A token of a key that exists, with another last character than its own. */
export function withWrongSecret(token: string): string {
  return token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')
}
