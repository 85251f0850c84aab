import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { fetchAuthMethods, requiresNoCredential } from '../src/cli/connection/auth-methods.ts'
import { runtimeKey } from '../src/cli/settings/profile.ts'
import {
  chooseKeychain,
  requireStorableLogin,
  saveProfileRuntime,
} from '../src/cli/sign-in/choose-keychain.ts'
import { noSignInNotes, otherRuntimeNote, signedInNotes } from '../src/cli/sign-in/notes.ts'
import { saveLogin } from '../src/cli/sign-in/save-login.ts'
import { readToken, signIn } from '../src/cli/sign-in/sign-in.ts'

export default class Login extends WbCommand {
  static override summary = 'sign in to a runtime'
  static override description =
    'The runtime determines how you sign in: with a code in a browser, or with an API key. The login is stored in the keychain of this system.'
  static override examples = [
    'wb login https://wb.example.com',
    'wb login https://wb.example.com --profile work',
    'wb login --with-token < ci.key',
  ]
  static override args = {
    url: Args.string({ ignoreStdin: true, description: 'address of the runtime [the current runtime]' }),
  }
  static override flags = {
    'with-token': Flags.boolean({ summary: 'read an API key or an access token from stdin' }),
    'insecure-storage': Flags.boolean({
      summary: 'store the login in a file that only you can read, instead of the keychain',
    }),
  }
  protected override readonly createsProfile = true
  /** Usually, the address is an argument, so the files of the working directory are not needed. */
  protected override readonly usesFolderFiles = false
  protected override interruptMessage = 'interrupted; nothing was stored'

  async run() {
    const { args, flags } = await this.parse(Login)
    if (args.url !== undefined) this.useUrl(args.url)
    const { profile, session, output, progress, signal } = this
    requireStorableLogin(profile)
    const methods = await this.waitFor(
      'checking how to sign in',
      fetchAuthMethods(session.anonymousClient, profile),
    )
    if (requiresNoCredential(methods)) {
      await saveProfileRuntime(profile, undefined)
      for (const line of noSignInNotes(profile, (await session.runtime()).kind)) output.note(line)
      return
    }
    const confirm = this.canAsk ? (question: string) => this.askYesNo(question) : undefined
    const driver = flags['insecure-storage'] ? 'file' : await chooseKeychain(profile, output, confirm)
    const signedIn = await signIn(session, methods, {
      readToken: flags['with-token']
        ? () => readToken(this.io.stdin, signal, question => this.askSecret(question))
        : undefined,
      promptForKey: this.canAsk ? () => this.askSecret('API key:') : undefined,
      screen: { output, progress, io: this.io, canAsk: this.canAsk, signal },
    })
    const { kind, tokens, me } = signedIn
    const login = { kind, who: me.label ?? me.id, tokens, driver }
    await saveLogin(profile, login, { clock: this.io.clock, signal })
    this.interruptMessage = 'interrupted; you are signed in'
    await saveProfileRuntime(profile, driver)
    const details = { profile: profile.name, runtime: runtimeKey(profile), kind, keychain: driver }
    if (output.json) return output.value({ ...me, ...details })
    for (const line of await signedInNotes(session, { ...signedIn, driver }, this.io.clock.now()))
      output.note(line)
    const note = otherRuntimeNote(profile, this.io)
    if (note) output.warn(note)
  }
}
