/** Returns a key token with a different last character. */
export function withWrongSecret(token: string): string {
  return token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')
}
