/** Names under which clouds hand credentials to whoever asks from inside. */
const metadataHosts: ReadonlySet<string> = new Set([
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.com',
  '[fd00:ec2::254]',
])

/**
 * Whether an address may be dialled for a model: http or https, no user information, and no host of a cloud's
 * metadata service or a link-local address. Names are looked at as they are; where they lead is checked when dialling.
 *
 * @see docs/http.md#addresses-of-services
 */
export function isEndpointUrl(address: string): boolean {
  if (!URL.canParse(address)) return false
  const url = new URL(address)
  const isPlain = /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  return isPlain && url.hostname !== '' && !isForbiddenHost(url.hostname)
}

/** @param host  as `URL` gives it: lower case, numbers in their dotted form, IPv6 in brackets */
function isForbiddenHost(host: string): boolean {
  const name = host.replace(/\.$/, '')
  const isLinkLocal = /^169\.254\./.test(name) || /^\[fe[89ab][0-9a-f]:/.test(name)
  return metadataHosts.has(name) || isLinkLocal || /^\[::(?:ffff:)?a9fe:/.test(name)
}
