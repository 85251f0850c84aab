/** Text that replaces a secret. */
export const redactedPlaceholder = '[redacted]'

/** Names of parameters with a secret value, in lowercase and without separators. */
const secretName = new RegExp(
  [
    '^(?:key|sig|sas|auth|pass|pwd|pat|jwt)$',
    '(?:token|secret|password|passwd|passphrase|signature|credentials?|authorization|bearer)$',
    '(?:api|access|account|auth|functions?|master|private|secret|service|shared|subscription)key$',
  ].join('|'),
)

/** A parameter in the query or fragment of a URL. */
const parameter = /([?&#])([^=&#]*)=([^&#]+)/g
/**
 * Like {@link parameter}, for URLs within a text. The length of names is limited, so that a search takes linear time.
 */
const parameterInText = /([?&#])([\w.%~+[\]-]{1,80})=([^\s&#"'\\<>]+)/g

/** Returns the name of the first URL parameter whose name suggests a secret value; undefined if no name does. */
export function secretParameterOf(url: string): string | undefined {
  const match = [...url.matchAll(parameter)].find(([, , name]) => isSecretName(name!))
  return match?.[2]
}

/** Returns a URL with the values of secret parameters replaced by `[redacted]`. */
export function redactQuerySecrets(url: string): string {
  return url.replace(parameter, redactSecretValue)
}

/** Like {@link redactQuerySecrets}, for all URLs in a text. */
export function redactQuerySecretsInText(text: string): string {
  return text.replace(parameterInText, redactSecretValue)
}

function redactSecretValue(pair: string, separator: string, name: string): string {
  return isSecretName(name) ? `${separator}${name}=${redactedPlaceholder}` : pair
}

/** @param name  as in the URL; may be percent-encoded */
function isSecretName(name: string): boolean {
  const [decoded = ''] = new URLSearchParams(`${name}=`).keys()
  return secretName.test(decoded.toLowerCase().replace(/[^a-z0-9]/g, ''))
}
