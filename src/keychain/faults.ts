import { type KeychainFault, KeychainUnavailable } from './keychain.ts'
import type { KeychainLibrary } from './libraries.ts'

interface FaultText {
  message: string
  hint: string
}

const packageNames: Record<KeychainLibrary, string> = { keyring: '@napi-rs/keyring', keytar: 'keytar' }

const installHints: Record<KeychainLibrary, string> = {
  keyring: 'Install Workbase again with optional packages. They contain the library for this platform.',
  keytar:
    'Install Workbase again with optional packages. On Debian, first run: apt-get install libsecret-1-dev',
}

const unlockHints: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'Unlock it, then run the command again: security unlock-keychain',
  linux: 'Unlock it, then run the command again. Without a desktop: gnome-keyring-daemon --unlock',
}

/** Returns the error for a library that cannot be used, with a message and a hint for the user. */
export function libraryUnavailable(
  library: KeychainLibrary,
  fault: KeychainFault,
  cause: unknown,
): KeychainUnavailable {
  const { message, hint } = faultText(library, fault)
  return new KeychainUnavailable(library, fault, message, hint, { cause })
}

function faultText(library: KeychainLibrary, fault: KeychainFault): FaultText {
  switch (fault) {
    case 'missing':
      return {
        message: `${packageNames[library]} is not installed for this platform.`,
        hint: installHints[library],
      }
    case 'locked':
      return {
        message: 'The keychain of this system is locked.',
        hint: unlockHints[process.platform] ?? 'Unlock it, then run the command again.',
      }
    case 'timeout':
      return {
        message: 'The keychain of this system did not respond in time.',
        hint: 'It may be asking for its password on the desktop. Enter the password, then run the command again.',
      }
    case 'unavailable':
      return { message: 'No usable keychain was found on this system.', hint: noKeychainText() }
  }
}

function noKeychainText(): string {
  return process.platform === 'linux'
    ? 'Start a Secret Service (GNOME Keyring, KWallet, KeePassXC), or store the login in a file.'
    : 'Sign in to the desktop of this system, or store the login in a file.'
}
