import type { Me } from '../../contract/auth.ts'
import type { Chosen } from '../credentials/credential.ts'
import type { Tokens } from '../credentials/kept-tokens.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import type { Fields } from '../shown/resources.ts'
import { mayOf, nameOf } from './identity.ts'
import { credentialWords, endingAt, endOf, placeOf } from './notes.ts'

/** Who somebody is to a runtime, and by what. */
export interface Status {
  readonly profile: Profile
  readonly chosen: Chosen
  /** Null for who is nobody there. */
  readonly me: Me | null
  /** Where `me` may do what it may, in words. */
  readonly reach: string | undefined
  /** Of a login that is stored. */
  readonly tokens: Tokens | undefined
}

/** For a program. */
export function statusJson({ profile, chosen, me, tokens }: Status): object {
  const { used, others, why } = chosen
  return {
    profile: profile.name,
    runtime: runtimeKey(profile),
    runtimeFrom: profile.urlFrom ?? 'data directory',
    credential: used
      ? { kind: used.kind, from: used.from, keychain: used.from === 'wb login' ? used.login.driver : null }
      : null,
    why: why ?? null,
    others: others.map(({ kind, from }) => ({ kind, from })),
    expiresAt: endingAt(me, tokens) ?? null,
    me,
  }
}

/** For a person. */
export function statusFields({ profile, chosen, me, reach, tokens }: Status): Fields {
  const { used, others, why } = chosen
  return {
    profile:
      profile.nameFrom === 'wb profiles use' ? profile.name : `${profile.name}, by ${profile.nameFrom}`,
    runtime: `${runtimeKey(profile)}, by ${profile.urlFrom === 'profile' ? 'the profile' : (profile.urlFrom ?? 'its data directory')}`,
    credential: used ? `${credentialWords(used)}${why ? `: ${why}` : ''}` : (why ?? 'none'),
    'not sent': others.map(credentialWords).join(', '),
    kept: used?.from === 'wb login' ? placeOf(used.login.driver, profile) : undefined,
    who: me && nameOf(me),
    may: me && `${mayOf(me).join('; ')}, in ${reach}`,
    ends: endOf(me, tokens),
  }
}
