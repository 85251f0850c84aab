import type { Entries } from './keychain.ts'
import { faultOf, type Library, libraries } from './libraries.ts'
import type { Answer, Call } from './process.ts'

const library = process.argv[2] as Library
const loading = libraries[library]()
// The first call reports the error.
loading.catch(() => {})

// The terminal sends SIGINT to this process too, but the command decides if a write must still be completed.
process.on('SIGINT', () => {})
process.on('disconnect', end)
// The command may have ended while this file was being loaded.
if (!process.connected) end()
process.on('message', async (call: Call) => process.send!(await answer(call)))

async function answer({ id, name, input }: Call): Promise<Answer> {
  let entries: Entries
  try {
    entries = await loading
  } catch (error) {
    return { id, fault: 'missing', text: String(error) }
  }
  try {
    const run = entries[name] as (...input: readonly string[]) => Promise<unknown>
    return { id, value: await run(...input) }
  } catch (error) {
    return { id, fault: faultOf(error), text: String(error) }
  }
}

/** Any other way to exit would wait for pending calls. */
function end(): void {
  process.kill(process.pid, 'SIGKILL')
}
