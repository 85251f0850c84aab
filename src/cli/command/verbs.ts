/** Equivalent commands by the verb that other tools use. The first command that exists in the topic is used. */
const commandsBySynonym = new Map([
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

const removalCommands = ['revoke', 'cancel', 'disallow']

/** Similar commands by verb. They are only suggested, because they do not do exactly the same thing. */
const suggestedCommands = new Map([
  ['add', ['ingest', 'create']],
  ['rm', removalCommands],
  ['del', removalCommands],
  ['delete', removalCommands],
  ['remove', removalCommands],
  ['set', ['update']],
  ['mv', ['rename', 'update']],
  ['rename', ['update']],
])

/**
 * Returns the command of a topic that does what the typed verb does in other tools.
 *
 * @param hasCommand  returns true if the topic has a command with this name
 */
export function synonymOf(verb: string, hasCommand: (verb: string) => boolean): string | undefined {
  return hasCommand(verb) ? undefined : commandsBySynonym.get(verb)?.find(hasCommand)
}

/** Returns the command to suggest for a verb that is not a command of the topic. */
export function suggestionFor(verb: string, hasCommand: (verb: string) => boolean): string | undefined {
  return suggestedCommands.get(verb)?.find(hasCommand)
}
