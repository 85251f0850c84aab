import type { AuthContext } from '../access/subject.ts'
import { grantsScope } from '../contract/scopes.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { ConversationRow } from '../storage/tables.ts'

/** Conversations that a caller can see: all, those of one principal, or none. */
export type ConversationVisibility =
  | { readonly of: 'all' | 'none' }
  | { readonly of: 'principal'; readonly id: string }

/**
 * Returns the conversations that a caller can see in a workspace. Only this function decides it.
 *
 * With row-level access, a conversation is visible to the principal who began it and to holders of `manage:access`.
 * An anonymous caller is not a principal, so it sees none.
 *
 * @see docs/decisions/0012-conversations.md
 */
export function conversationVisibility(
  { rlacEnabled }: Pick<Workspace, 'rlacEnabled'>,
  { subject }: AuthContext,
): ConversationVisibility {
  if (!rlacEnabled) return { of: 'all' }
  if (!subject) return { of: 'none' }
  if (grantsScope(subject.scopes, 'manage:access')) return { of: 'all' }
  return subject.principalId === null ? { of: 'none' } : { of: 'principal', id: subject.principalId }
}

/** Returns true if the caller can see a conversation. */
export function isConversationVisible(
  visibility: ConversationVisibility,
  { ownerPrincipalId }: Pick<ConversationRow, 'ownerPrincipalId'>,
): boolean {
  return visibility.of === 'principal' ? ownerPrincipalId === visibility.id : visibility.of === 'all'
}
