/** Commands by the verbs that other tools use for them. The first command that the topic has is used. */
const commandsOfSynonym = new Map([
  ['ls', ['list']],
  ['get', ['show']],
  ['describe', ['show']],
  ['info', ['show']],
  ['rm', ['delete', 'remove']],
  ['del', ['delete', 'remove']],
  ['delete', ['remove']],
  ['remove', ['delete']],
  ['new', ['create', 'add']],
  ['create', ['add']],
  ['edit', ['update']],
])

const endingVerbs = ['revoke', 'cancel', 'disallow']

/** Commands that are only suggested for a verb, because they do not do exactly the same. */
const suggestedCommands = new Map([
  ['add', ['ingest', 'create']],
  ['rm', endingVerbs],
  ['del', endingVerbs],
  ['delete', endingVerbs],
  ['remove', endingVerbs],
  ['set', ['update']],
  ['mv', ['rename', 'update']],
  ['rename', ['update']],
])

/**
 * Returns the command of a topic that does what the typed verb does in other tools.
 *
 * @param has  returns true if the topic has a command of this name
 */
export function synonymOf(verb: string, has: (verb: string) => boolean): string | undefined {
  return has(verb) ? undefined : commandsOfSynonym.get(verb)?.find(has)
}

/** Returns the command of a topic to suggest for a verb that it does not have. */
export function suggestionFor(verb: string, has: (verb: string) => boolean): string | undefined {
  return suggestedCommands.get(verb)?.find(has)
}
