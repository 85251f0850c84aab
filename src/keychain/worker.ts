import type { EntriesCall, EntriesResult } from './entries-process.ts'
import type { KeychainEntries } from './keychain.ts'
import { type KeychainLibrary, keychainFaultOf, loadLibrary } from './libraries.ts'

const library = process.argv[2] as KeychainLibrary
const loading = loadLibrary[library]()
// The first call reports the error.
loading.catch(() => {})

// The terminal sends SIGINT to this process too, but the command decides if a write must still be completed.
process.on('SIGINT', () => {})
process.on('disconnect', endProcess)
// The command may have ended while this file was being loaded.
if (!process.connected) endProcess()
process.on('message', async (call: EntriesCall) => process.send!(await answerCall(call)))

async function answerCall({ id, name, input }: EntriesCall): Promise<EntriesResult> {
  let entries: KeychainEntries
  try {
    entries = await loading
  } catch (error) {
    return { id, fault: 'missing', text: String(error) }
  }
  try {
    const run = entries[name] as (...input: readonly string[]) => Promise<unknown>
    return { id, value: await run(...input) }
  } catch (error) {
    return { id, fault: keychainFaultOf(error), text: String(error) }
  }
}

/** Any other way to exit would wait for pending calls. */
function endProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
