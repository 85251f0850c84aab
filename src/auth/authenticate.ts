import { type AuthContext, anonymous } from '../access/subject.ts'
import type { Config } from '../config/schema.ts'
import { WbError } from '../contract/errors.ts'

/** How requests prove who they are. */
export type Authenticate = (request: Request) => Promise<AuthContext> | AuthContext

/**
 * How requests prove who they are by this configuration.
 *
 * @throws driver_unavailable  the mode has no verifier here
 */
export function authenticator({ mode, anonymousPolicy }: AuthSettings): Authenticate {
  if (mode === 'disabled') return withoutVerification(anonymousPolicy)
  throw new WbError('driver_unavailable', `auth.mode: '${mode}' has no verifier in this version`, {
    hint: 'Use disabled, behind an access boundary of your own.',
  })
}

type AuthSettings = Pick<Config['auth'], 'mode' | 'anonymousPolicy'>

/**
 * Mode `disabled`: nothing is verified, and everyone is anonymous.
 *
 * @param policy  `reject` refuses requests without an `Authorization` header, in this mode too
 * @see specification 2.2, 5.2
 */
function withoutVerification(policy: AuthSettings['anonymousPolicy']): Authenticate {
  return request => {
    if (policy === 'reject' && !request.headers.has('authorization'))
      throw new WbError('unauthorized', 'this runtime refuses requests without credentials')
    return anonymous
  }
}
