import { type AccessOf, fullVisibility } from '../../src/access/row-access.ts'

/** Access to a workspace without row-level access. */
export const openAccess: AccessOf = async actor => ({
  isEnabled: false,
  actor,
  ownerId: null,
  requirePrincipal() {},
  visibility: fullVisibility,
  visibleOrNone: fullVisibility,
})
