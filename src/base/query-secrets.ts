/** Text that is shown instead of a secret. */
export const hidden = '[redacted]'

/** Names of parameters that carry a secret, in lower case, without separators. */
const secretName = new RegExp(
  [
    '^(?:key|sig|sas|auth|pass|pwd|pat|jwt)$',
    '(?:token|secret|password|passwd|passphrase|signature|credentials?|authorization|bearer)$',
    '(?:api|access|account|auth|functions?|master|private|secret|service|shared|subscription)key$',
  ].join('|'),
)

/** A parameter in the query or the fragment of a text that is a URL. */
const parameter = /([?&#])([^=&#]*)=([^&#]+)/g
/** Like {@link parameter}, anywhere in a text. Names have a maximum length, so a long text is read in linear time. */
const parameterInText = /([?&#])([\w.%~+[\]-]{1,80})=([^\s&#"'\\<>]+)/g

/** Returns the name of the first URL parameter whose name suggests a secret; undefined if there is none. */
export function secretParameterOf(url: string): string | undefined {
  const found = [...url.matchAll(parameter)].find(([, , name]) => isSecret(name!))
  return found?.[2]
}

/** Returns a URL with the values of such parameters replaced by `[redacted]`. Everything else is unchanged. */
export function withoutQuerySecrets(url: string): string {
  return url.replace(parameter, hideValue)
}

/** Like {@link withoutQuerySecrets}, for all URLs of a text. */
export function hideQuerySecrets(text: string): string {
  return text.replace(parameterInText, hideValue)
}

function hideValue(pair: string, mark: string, name: string): string {
  return isSecret(name) ? `${mark}${name}=${hidden}` : pair
}

/** @param name  as in the URL; can be percent-encoded */
function isSecret(name: string): boolean {
  const [decoded = ''] = new URLSearchParams(`${name}=`).keys()
  return secretName.test(decoded.toLowerCase().replace(/[^a-z0-9]/g, ''))
}
