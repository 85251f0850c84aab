/**
 * A queue whose items are taken in turns: round-robin by workspace, and within a workspace round-robin by member, for
 * example by caller. So the items of one workspace do not delay those of another, however many members it has.
 */
export class FairQueue<T> {
  readonly #workspaces = new Map<string, Map<string, Set<T>>>()

  add(workspaceId: string, member: string, item: T): void {
    const members = this.#workspaces.get(workspaceId) ?? new Map<string, Set<T>>()
    const items = members.get(member) ?? new Set()
    this.#workspaces.set(workspaceId, members.set(member, items.add(item)))
  }

  /** Returns the number of items of a member. */
  count(workspaceId: string, member: string): number {
    return this.#workspaces.get(workspaceId)?.get(member)?.size ?? 0
  }

  delete(workspaceId: string, member: string, item: T): void {
    const members = this.#workspaces.get(workspaceId)
    const items = members?.get(member)
    items?.delete(item)
    if (items?.size === 0) members!.delete(member)
    if (members?.size === 0) this.#workspaces.delete(workspaceId)
  }

  /**
   * Removes the next item and returns it; undefined if no item can be taken.
   *
   * @param canTake  returns false if the next item of a workspace has to wait
   */
  take(canTake: (workspaceId: string, item: T) => boolean = () => true): T | undefined {
    for (const [workspaceId, members] of this.#workspaces) {
      const [[member, items]] = members as Iterable<[string, Set<T>]> as [[string, Set<T>]]
      const [item] = items as Iterable<T> as [T]
      if (!canTake(workspaceId, item)) continue
      items.delete(item)
      // A map iterates in insertion order, so inserting an entry again moves it to the end.
      members.delete(member)
      if (items.size > 0) members.set(member, items)
      this.#workspaces.delete(workspaceId)
      if (members.size > 0) this.#workspaces.set(workspaceId, members)
      return item
    }
    return undefined
  }
}
