import { redactedPlaceholder, redactQuerySecretsInText } from './query-secrets.ts'

/** Maximum length of a message that is logged or sent, in UTF-16 units. */
export const messageCharsMax = 500
/**
 * Length of the part of a message that is searched for secrets, in UTF-16 units. It is long enough that redaction
 * cannot move unsearched text into the part that is shown.
 */
const messageCharsSearched = 4_000
/** Maximum length of a string in a log line, in UTF-16 units. */
const textCharsMax = 16_000
/** Length of the part of such a string that is searched for secrets, in UTF-16 units. */
const textCharsSearched = 20_000

/** Secrets with a known format: keys of this runtime, of model providers and of code hosts, and JWTs. */
const knownFormats = new RegExp(
  [
    'wb_live_[A-Za-z0-9_]+',
    'sk-[A-Za-z0-9_-]{12,}',
    'AstraCS:[A-Za-z0-9:]+',
    'gsk_[A-Za-z0-9]{16,}',
    'hf_[A-Za-z0-9]{16,}',
    'gh[pousr]_[A-Za-z0-9]{16,}',
    'github_pat_[A-Za-z0-9_]{16,}',
    'xox[abprs]-[A-Za-z0-9-]{8,}',
    'AKIA[0-9A-Z]{16}',
    'AIza[0-9A-Za-z_-]{30,}',
    'eyJ[A-Za-z0-9_-]{8,4000}\\.[A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]*){1,3}',
  ]
    .map(format => `\\b${format}`)
    .join('|'),
  'g',
)
/** A bearer or basic credential, but not phrases such as "a bearer token". */
const bearer =
  /\b(Bearer|Basic)\s+(?!(?:tokens?|auth|authentication|credentials?)(?=\.?(?:[^A-Za-z0-9._~+/=-]|$)))[A-Za-z0-9._~+/=-]{4,}/gi
/** User name and password in a URL. Lengths are limited, because the search starts again at every word. */
const userInfo = /(\b[a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/?#@"'\\]{1,500}@/gi
const secretName = /(?:token|password|passwd|secret|api[-_]?key|authorization)$/i
/**
 * Pairs such as `token=…`, `api_key: …` and `"password":"…"`. The value ends at white space, a quote or a
 * separator. Messages about a field, such as `token: must be …`, do not match.
 */
const secretPairs =
  /((?:token|password|passwd|secret|api[-_]?key|authorization)(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?)(?!\[redacted\]|Bearer |Basic |null\b|(?:a|an|are|cannot|expected|has|invalid|is|may|must|needs|no|not|the|this|too|unrecognized|was) )[^\s"'&,;}\\]+/gi
/** Fast test for strings that may match one of the expressions above. */
const mayContainSecret =
  /token|passw|secret|api[-_]?key|authorization|bearer|basic|wb_live|sk-|AstraCS|gsk_|hf_|gh[pousr]_|github_pat|xox|AKIA|AIza|eyJ|@|(?:key|sig|sas|auth|pass|pwd|pat|jwt|signature|passphrase|credentials?)=/i

/** Replaces everything in a text that looks like a secret. */
export function redact(text: string): string {
  if (!mayContainSecret.test(text)) return text
  return redactQuerySecretsInText(text)
    .replace(bearer, `$1 ${redactedPlaceholder}`)
    .replace(knownFormats, redactedPlaceholder)
    .replace(userInfo, `$1${redactedPlaceholder}@`)
    .replace(secretPairs, `$1${redactedPlaceholder}`)
}

/** Redacts a line of JSON: replaces secrets in its strings, and all strings whose keys indicate a secret. */
export function redactLine(line: string): string {
  if (!mayContainSecret.test(line)) return line
  return `${JSON.stringify(JSON.parse(line, redactValue))}\n`
}

function redactValue(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  return secretName.test(name)
    ? redactedPlaceholder
    : truncate(redact(searchableBeginning(value, textCharsSearched)), textCharsMax)
}

/** Returns a message for logs and responses: redacted, and cut to its maximum length. */
export function presentableMessage(message: string): string {
  return truncate(redact(searchableBeginning(message, messageCharsSearched)), messageCharsMax)
}

/**
 * Returns the beginning of a long text. Omits its last word if the word may be part of a secret, because a truncated
 * secret may not be recognized.
 */
function searchableBeginning(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  let end = charsMax
  while (end > 0 && !secretBoundary.test(text[end]!)) end--
  const lastWord = text.slice(end, charsMax)
  const mayEndInSecret = mayContainSecret.test(lastWord) || lastWord.includes('://')
  return `${mayEndInSecret ? text.slice(0, end) : text.slice(0, charsMax)}…`
}

const secretBoundary = /[\s"'\\]/

function truncate(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`
}
