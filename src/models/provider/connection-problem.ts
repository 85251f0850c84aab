/** A problem with a connection to a provider. */
export interface ConnectionProblem {
  /** Completes a sentence about the service. */
  readonly reason: string
  readonly hint: string
}

const addressHint = 'Check the address (endpointBaseUrl of the service).'

const untrustedCertificate: ConnectionProblem = {
  reason: 'could not be reached: its TLS certificate is not trusted',
  hint: 'Check the address (endpointBaseUrl). For a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate.',
}

/** Problems, by the error codes of Node.js, undici and OpenSSL. */
const byCode: Readonly<Record<string, ConnectionProblem>> = {
  ENOTFOUND: {
    reason: 'could not be reached: its host name has no address (DNS)',
    hint: `${addressHint} If the name is right, check the DNS of this machine.`,
  },
  EAI_AGAIN: {
    reason: 'could not be reached: its host name could not be resolved (DNS)',
    hint: 'Check the network and the DNS of this machine, then retry.',
  },
  ECONNREFUSED: {
    reason: 'could not be reached: the connection was refused',
    hint: 'Start the model server, or check the port of its address (endpointBaseUrl).',
  },
  ECONNRESET: {
    reason: 'could not be reached: the connection was closed',
    hint: 'Retry. If it happens again, read the log of the model server or the proxy.',
  },
  ETIMEDOUT: {
    reason: 'could not be reached: the connection timed out',
    hint: `${addressHint} A firewall can also drop the connection.`,
  },
  EHOSTUNREACH: {
    reason: 'could not be reached: there is no route to its host',
    hint: `${addressHint} If it is right, check the network of this machine.`,
  },
  EPROTO: {
    reason: 'could not be reached: it does not support TLS',
    hint: 'If the server does not use TLS, start endpointBaseUrl with http://.',
  },
}

const aliases: Readonly<Record<string, string>> = {
  ENODATA: 'ENOTFOUND',
  UND_ERR_SOCKET: 'ECONNRESET',
  EPIPE: 'ECONNRESET',
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
  ENETUNREACH: 'EHOSTUNREACH',
  ERR_SSL_WRONG_VERSION_NUMBER: 'EPROTO',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'EPROTO',
}

/** Matches OpenSSL's error codes for an untrusted certificate. */
const certificateCode = /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/

/** Returns the problem that caused a failed request; undefined if unknown. */
export function connectionProblemIn(error: unknown): ConnectionProblem | undefined {
  for (const { code } of causesOf(error)) {
    if (typeof code !== 'string') continue
    const problem = byCode[aliases[code] ?? code]
    if (problem) return problem
    if (certificateCode.test(code)) return untrustedCertificate
  }
  return undefined
}

/** Maximum number of nested causes to search, because causes can be circular. */
const depthMax = 8

function* causesOf(error: unknown): Generator<{ code?: unknown }> {
  for (let cause = error, depth = 0; cause instanceof Error && depth < depthMax; depth++) {
    yield cause as { code?: unknown }
    if (cause instanceof AggregateError) yield* cause.errors as { code?: unknown }[]
    cause = cause.cause
  }
}
