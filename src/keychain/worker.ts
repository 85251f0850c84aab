import type { KeychainEntries } from './keychain.ts'
import type { KeychainCall, KeychainResult } from './keychain-process.ts'
import { type KeychainLibrary, keychainFaultOf, loadLibrary } from './libraries.ts'

const library = process.argv[2] as KeychainLibrary
const loading = loadLibrary[library]()
// Ignore a loading error here, because the first call reports it.
loading.catch(() => {})

// The terminal sends SIGINT to this process, too. Ignore it, because the command may still have to complete a write.
process.on('SIGINT', () => {})
process.on('disconnect', endProcess)
// The command may have ended while this file was being loaded.
if (!process.connected) endProcess()
process.on('message', async (call: KeychainCall) => process.send!(await handleCall(call)))

async function handleCall({ id, name, input }: KeychainCall): Promise<KeychainResult> {
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

/** Ends this process without waiting for pending calls, which `process.exit` would do. */
function endProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
