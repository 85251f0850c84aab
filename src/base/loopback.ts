/**
 * Returns true for a loopback host: data sent to it does not leave this machine, and other machines cannot
 * connect to a port bound to it.
 *
 * @param host  name or address, from a URL (IPv6 in brackets) or from a bind address
 * @see RFC 6761 section 6.3
 */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/.test(host)
}

/**
 * Returns true if data sent to a URL would cross a network unencrypted.
 *
 * @see docs/security.md#rule-15
 */
export function isUnencryptedRemote({ protocol, hostname }: Pick<URL, 'protocol' | 'hostname'>): boolean {
  return protocol !== 'https:' && !isLoopback(hostname)
}

/** Returns the host to use in a URL with which this machine connects to a bind address. */
export function connectableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
