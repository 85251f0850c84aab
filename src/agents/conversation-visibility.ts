import type { AuthContext } from '../access/subject.ts'
import { grantsScope } from '../contract/scopes.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { ConversationRow } from '../storage/tables.ts'

/** Conversations that a caller can see: all, those of one principal, or none. */
export type ConversationVisibility =
  | { readonly kind: 'all' | 'none' }
  | { readonly kind: 'principal'; readonly id: string }

/**
 * Returns the conversations that a caller can see in a workspace. All visibility checks use this function.
 *
 * With row-level access, a conversation is visible to the principal who started it and to callers with the scope
 * `manage:access`. A caller that views the workspace as a principal sees the conversations of that principal. An anonymous
 * caller is not a principal, and can see no conversations.
 *
 * @see docs/decisions/0012-conversations.md
 */
export function conversationVisibility(
  { rlacEnabled }: Pick<Workspace, 'rlacEnabled'>,
  { subject, viewedPrincipalId }: AuthContext,
): ConversationVisibility {
  if (!rlacEnabled) return { kind: 'all' }
  if (viewedPrincipalId !== null) return { kind: 'principal', id: viewedPrincipalId }
  if (!subject) return { kind: 'none' }
  if (grantsScope(subject.scopes, 'manage:access')) return { kind: 'all' }
  return subject.principalId === null ? { kind: 'none' } : { kind: 'principal', id: subject.principalId }
}

/** Returns true if the caller can see a conversation. */
export function isConversationVisible(
  visibility: ConversationVisibility,
  { ownerPrincipalId }: Pick<ConversationRow, 'ownerPrincipalId'>,
): boolean {
  return visibility.kind === 'principal' ? ownerPrincipalId === visibility.id : visibility.kind === 'all'
}
