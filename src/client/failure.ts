import { type ErrorCode, isErrorCode, WbError } from '../contract/errors.ts'
import type { Incoming } from './transport.ts'
import { Unreachable } from './unreachable.ts'

/** What stands for a code that this version does not know, by what its status means. */
const codeOfStatus: Record<number, ErrorCode> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  413: 'payload_too_large',
  422: 'validation_error',
  429: 'rate_limited',
  431: 'headers_too_large',
  501: 'list_records_not_supported',
  502: 'data_api_error',
  503: 'control_plane_unavailable',
}

interface Said {
  code: string
  message: string
  requestId?: string
  hint?: string
}

/** The envelope of an error answer as the error that the runtime threw. @see specification 7.1 */
export async function failure(answer: Incoming): Promise<WbError | Unreachable> {
  if (answer.status >= 300 && answer.status < 400) return redirected(answer)
  const said = envelope(await answer.text())
  if (!said) return stranger(answer)
  const { code, message } = said
  const facts = { requestId: said.requestId, hint: said.hint, wireCode: code, wireStatus: answer.status }
  if (isErrorCode(code)) return new WbError(code, message, facts)
  return new WbError(codeOfStatus[answer.status] ?? 'internal_error', message, facts)
}

function envelope(body: string): Said | undefined {
  try {
    const { error } = JSON.parse(body) as { error?: Partial<Said> }
    if (typeof error?.code !== 'string' || typeof error.message !== 'string') return undefined
    return { ...error, requestId: text(error.requestId), hint: text(error.hint) } as Said
  } catch {
    return undefined
  }
}

/** An answer may hold anything. */
function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function redirected(answer: Incoming): Unreachable {
  const target = answer.headers.get('location') ?? 'elsewhere'
  return new Unreachable(
    `${where(answer)} sends on to ${target}, and API calls follow no redirect`,
    'Name the address of the runtime itself with --url.',
  )
}

/** Something answers, but it is no runtime. */
export function stranger(answer: Incoming): Unreachable {
  return new Unreachable(
    `${where(answer)} answered ${answer.status}, but not as a Workbase runtime does`,
    'Check the address (--url, WB_URL) and what stands between here and the runtime.',
  )
}

/** The origin of an answer, in words. */
export function where({ url }: Incoming): string {
  return url === '' ? 'the runtime' : new URL(url).origin
}
