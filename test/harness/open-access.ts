import { type AccessOf, fullVisibility } from '../../src/access/row-access.ts'

const visibility = fullVisibility()

/** Access to a workspace without row-level access. */
export const openAccess: AccessOf = async actor => ({
  isEnabled: false,
  actor,
  ownerId: null,
  requirePrincipal() {},
  visibility: () => visibility,
  recordDenial() {},
  canRead: async (_base, _use, decide) => decide(visibility),
  openChange: () => ({ visibility, authorize() {} }),
  seesAll: () => true,
  documentTags: () => undefined,
})
