import { type AuthContext, anonymous } from '../access/subject.ts'
import { WbError } from '../contract/errors.ts'

/** How requests prove who they are. */
export type Authenticate = (request: Request) => Promise<AuthContext> | AuthContext

/**
 * Mode `disabled`: nothing is verified, and everyone is anonymous.
 *
 * @param policy  `reject` refuses requests without an `Authorization` header, in this mode too
 * @see specification 2.2, 5.2
 */
export function withoutVerification(policy: 'allow' | 'reject'): Authenticate {
  return request => {
    if (policy === 'reject' && !request.headers.has('authorization'))
      throw new WbError('unauthorized', 'this runtime refuses requests without credentials')
    return anonymous
  }
}
