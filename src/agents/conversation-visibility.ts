import type { AuthContext } from '../access/subject.ts'
import { grantsScope } from '../contract/scopes.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { ConversationRow } from '../storage/tables.ts'

/** Whose conversations a caller sees: everyone's, those of one principal, or nobody's. */
export type ConversationVisibility =
  | { readonly of: 'everyone' | 'nobody' }
  | { readonly of: 'principal'; readonly id: string }

/**
 * Whose conversations a caller sees in a workspace. The only place that decides it.
 *
 * With row-level access on, they are for the principal who began them, and for holders of `manage:access`; a caller
 * whom nobody vouches for is no principal, even where it passes every gate.
 *
 * @see docs/decisions/conversations.md
 */
export function conversationVisibility(
  { rlacEnabled }: Pick<Workspace, 'rlacEnabled'>,
  { subject }: AuthContext,
): ConversationVisibility {
  if (!rlacEnabled) return { of: 'everyone' }
  if (!subject) return { of: 'nobody' }
  if (grantsScope(subject.scopes, 'manage:access')) return { of: 'everyone' }
  return subject.principalId === null ? { of: 'nobody' } : { of: 'principal', id: subject.principalId }
}

/** Whether a conversation is among them. */
export function isConversationVisible(
  sight: ConversationVisibility,
  { ownerPrincipalId }: Pick<ConversationRow, 'ownerPrincipalId'>,
): boolean {
  return sight.of === 'principal' ? ownerPrincipalId === sight.id : sight.of === 'everyone'
}
