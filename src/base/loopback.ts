/**
 * Whether a host is this machine, so that what is sent there crosses no network, and nobody else reaches what listens
 * there.
 *
 * @param host  name or address, of a URL (IPv6 in brackets) or of a bind
 * @see RFC 6761 section 6.3
 */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/.test(host)
}

/** Returns true if data sent to an address crosses a network unencrypted. @see docs/security.md#rule-15 */
export function isInTheClear({ protocol, hostname }: Pick<URL, 'protocol' | 'hostname'>): boolean {
  return protocol !== 'https:' && !isLoopback(hostname)
}

/** A host that is listened on, as this machine reaches it in a URL. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
