import { type KeychainFault, KeychainUnavailable } from './keychain.ts'
import type { Library } from './libraries.ts'

interface Said {
  message: string
  hint: string
}

const packages: Record<Library, string> = { keyring: '@napi-rs/keyring', keytar: 'keytar' }

const installing: Record<Library, string> = {
  keyring: 'Install Workbase anew, with optional packages: they hold the part for this platform.',
  keytar: 'Install Workbase anew, with optional packages; on Debian after: apt-get install libsecret-1-dev',
}

const unlocking: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'Unlock it, then run the command again: security unlock-keychain',
  linux: 'Unlock it, then run the command again. Without a desktop: gnome-keyring-daemon --unlock',
}

/** Returns the error for a library that cannot be used, with a message for the user. */
export function unavailable(library: Library, fault: KeychainFault, cause: unknown): KeychainUnavailable {
  const { message, hint } = said(library, fault)
  return new KeychainUnavailable(library, fault, message, hint, { cause })
}

function said(library: Library, fault: KeychainFault): Said {
  switch (fault) {
    case 'missing':
      return {
        message: `${packages[library]} is not installed for this platform.`,
        hint: installing[library],
      }
    case 'locked':
      return {
        message: 'The keychain of this system is locked.',
        hint: unlocking[process.platform] ?? 'Unlock it, then run the command again.',
      }
    case 'timeout':
      return {
        message: 'The keychain of this system did not answer in time.',
        hint: 'It may be asking for its password on the desktop: answer there, then run the command again.',
      }
    case 'unavailable':
      return { message: 'This system has no keychain that can be used here.', hint: noKeychain() }
  }
}

function noKeychain(): string {
  return process.platform === 'linux'
    ? 'Start a Secret Service (GNOME Keyring, KWallet, KeePassXC), or keep the login in a file.'
    : 'Sign in to the desktop of this system, or keep the login in a file.'
}
