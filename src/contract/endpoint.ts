/** Host names of the metadata services of cloud providers, which return credentials of the machine. */
const metadataHosts: ReadonlySet<string> = new Set([
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.com',
  '[fd00:ec2::254]',
])

/**
 * Returns true if a URL may be used to call a model: it is an http or https URL without user information, and
 * its host is not a metadata service or link-local address. Host names are not resolved here: their addresses
 * are checked when a connection is opened.
 *
 * @see docs/http.md#addresses-of-services
 */
export function isEndpointUrl(address: string): boolean {
  if (!URL.canParse(address)) return false
  const url = new URL(address)
  const isPlain = /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  return isPlain && url.hostname !== '' && !isForbiddenHost(url.hostname)
}

/** @param host  host in the form of `URL.hostname`: lowercase, IPv4 in dotted form, IPv6 in brackets */
function isForbiddenHost(host: string): boolean {
  const name = host.replace(/\.$/, '')
  const isLinkLocal = /^169\.254\./.test(name) || /^\[fe[89ab][0-9a-f]:/.test(name)
  return metadataHosts.has(name) || isLinkLocal || /^\[::(?:ffff:)?a9fe:/.test(name)
}
