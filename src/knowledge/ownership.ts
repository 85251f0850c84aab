import { authorize } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import type { RowAccess } from '../access/row-access.ts'
import { needs } from '../contract/access.ts'
import type { DocumentCreate } from '../contract/documents.ts'
import { ownerPayloadKey } from '../contract/fields.ts'
import type { Payload } from '../storage/content.ts'

/**
 * Returns the fields of a new document, which by default is visible only to its owner if row-level access is on.
 *
 * @see docs/access.md#row-level-access
 */
export function withOwner<Body extends Pick<DocumentCreate, 'visibleTo' | 'ownerPrincipalId'>>(
  body: Body,
  { ownerId }: RowAccess,
): Body {
  if (ownerId === null) return body
  const { visibleTo = [ownerId], ownerPrincipalId = ownerId } = body
  return { ...body, visibleTo, ownerPrincipalId }
}

/**
 * Checks that a caller may name the owner of a document: its own principal, or any with `manage:access`. Texts and file
 * names are unique per owner, so a document that is attributed to another principal affects what that principal can ingest.
 *
 * @throws forbidden
 */
export function authorizeOwner(
  { ownerPrincipalId }: Pick<DocumentCreate, 'ownerPrincipalId'>,
  { isEnabled, ownerId }: RowAccess,
  workspaceId: string,
  caller: Pick<Caller, 'auth'>,
): void {
  if (isEnabled && ownerPrincipalId !== undefined && ownerPrincipalId !== ownerId)
    authorize({ rule: needs('manage:access'), workspaceId }, caller)
}

/**
 * Returns the payload fields that decide who may see a record that is stored directly. With row-level access, the list of
 * a record that only administrators may see is empty, so that the record is not published when row-level access is turned
 * off and on again.
 */
export function ownerPayload(
  { isEnabled, ownerId }: Pick<RowAccess, 'isEnabled' | 'ownerId'>,
  visibleTo: readonly string[] | null | undefined,
): Payload {
  const requested = visibleTo === undefined && ownerId !== null ? [ownerId] : visibleTo
  const readers = requested ?? (isEnabled ? [] : null)
  return { ...(readers && { visible_to: readers }), ...(ownerId !== null && { [ownerPayloadKey]: ownerId }) }
}
